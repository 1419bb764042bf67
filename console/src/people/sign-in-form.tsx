// The sign-in form. A person signs in with a password, a passkey or a code sent by e-mail, and with a second factor if
// the account has one. The operator can also sign in with a personal access token.
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import type { SignInResult } from '../../../contract/sign-in.ts';
import { call } from '../api/call.ts';
import { checkToken, markSignedInAsPerson, signIn, signOutReason } from '../api/credentials.ts';
import { askPasskey, supportsPasskeys } from '../api/passkeys.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';

type Step =
  | { readonly name: 'password' | 'token' }
  | { readonly name: 'email_code'; readonly ticket: string; readonly email: string }
  | { readonly name: 'second_factor'; readonly ticket: string };

/**
 * `onSignedIn` is called after the sign-in. Pages that follow the sign-in state do not need it, because they replace
 * the form themselves.
 */
export function SignInForm({ onSignedIn: onDone = () => {} }: { readonly onSignedIn?: () => void }) {
  const [step, setStep] = useState<Step>({ name: 'password' });
  const proceed = ({ status, ticket = '' }: SignInResult): void => {
    if (status === 'second_factor_required') return setStep({ name: 'second_factor', ticket });
    markSignedInAsPerson();
    onDone();
  };
  const back = () => setStep({ name: 'password' });
  if (step.name === 'token') return <TokenStep back={back} onSignedIn={onDone} />;
  if (step.name === 'second_factor') return <SecondFactorStep ticket={step.ticket} proceed={proceed} back={back} />;
  if (step.name === 'email_code') return <EmailCodeStep {...step} proceed={proceed} back={back} />;
  return <PasswordStep proceed={proceed} showStep={setStep} />;
}

function PasswordStep({
  proceed,
  showStep: go,
}: {
  readonly proceed: (result: SignInResult) => void;
  readonly showStep: (step: Step) => void;
}) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const passwordSignIn = useMutation({
    mutationFn: () => call('signInWithPassword', { body: { email, password } }),
    onSuccess: proceed,
  });
  const passkeySignIn = useMutation({
    mutationFn: async () => {
      const challenge = await call('requestPasskeyChallenge', {});
      return call('signInWithPasskey', { body: { ticket: challenge.ticket, response: await askPasskey(challenge) } });
    },
    onSuccess: proceed,
  });
  const codeRequest = useMutation({
    mutationFn: () => call('requestEmailCode', { body: { email } }),
    onSuccess: ({ ticket }) => go({ name: 'email_code', ticket, email }),
  });
  const mutations = [passwordSignIn, passkeySignIn, codeRequest];
  const reason = signOutReason();
  const error = mutations.find(work => work.error)?.error;
  const runOnly = (work: { mutate(): void }): void => {
    for (const other of mutations) other.reset();
    work.mutate();
  };
  return (
    <div className="grid gap-5">
      <Form submit={() => runOnly(passwordSignIn)}>
        {reason && !error && (
          <p role="status" className="rounded-md bg-warn-soft px-3 py-2 text-sm">
            {reason}
          </p>
        )}
        <TextField
          label="E-mail address"
          type="email"
          autoComplete="username webauthn"
          value={email}
          onChange={event => setEmail(event.target.value)}
          required
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          value={password}
          onChange={event => setPassword(event.target.value)}
          required
        />
        <FormError error={error} />
        <Button type="submit" look="primary" busy={passwordSignIn.isPending}>
          Sign in
        </Button>
      </Form>
      <div className="grid gap-2">
        {supportsPasskeys() && (
          <Button icon="keys" busy={passkeySignIn.isPending} onClick={() => runOnly(passkeySignIn)}>
            Sign in with a passkey
          </Button>
        )}
        <Button busy={codeRequest.isPending} disabled={!email.includes('@')} onClick={() => runOnly(codeRequest)}>
          Send me a code by e-mail
        </Button>
        <Button look="quiet" onClick={() => go({ name: 'token' })}>
          Use an access token
        </Button>
      </div>
      <Help title="No account yet?">
        <p className="mb-3 text-sm text-soft">
          When Berth first started, it printed a link for setting up the first account. To print another one, run this
          command on the machine that runs Berth. It also helps if you have lost your password.
        </p>
        <CodeBlock code="npm run -s berth -- accounts link" label="the command" />
      </Help>
    </div>
  );
}

function SecondFactorStep({ ticket, proceed, back }: StepProps & { readonly ticket: string }) {
  const [method, setMethod] = useState<'totp' | 'recovery_code'>('totp');
  const usesAuthenticator = method === 'totp';
  return (
    <CodeForm
      key={method}
      about={
        usesAuthenticator
          ? 'Enter the code that your authenticator app shows.'
          : 'Enter one of your recovery codes. It works once.'
      }
      label={usesAuthenticator ? 'Code' : 'Recovery code'}
      isNumeric={usesAuthenticator}
      send={code => call('giveSecondFactor', { body: { ticket, method, code } })}
      proceed={proceed}
      back={back}
      more={
        <Button look="quiet" onClick={() => setMethod(usesAuthenticator ? 'recovery_code' : 'totp')}>
          {usesAuthenticator ? 'Use a recovery code' : 'Use the authenticator app'}
        </Button>
      }
    />
  );
}

const EmailCodeStep = ({
  ticket,
  email,
  proceed,
  back,
}: StepProps & { readonly ticket: string; readonly email: string }) => (
  <CodeForm
    about={`If ${email} has an account, a code was sent there. It is valid for ten minutes.`}
    label="Code"
    isNumeric
    send={code => call('signInWithEmailCode', { body: { ticket, code } })}
    proceed={proceed}
    back={back}
  />
);

interface StepProps {
  readonly proceed: (result: SignInResult) => void;
  readonly back: () => void;
}

function CodeForm({
  about,
  label,
  isNumeric,
  send,
  proceed,
  back,
  more,
}: StepProps & {
  readonly about: string;
  readonly label: string;
  readonly isNumeric: boolean;
  readonly send: (code: string) => Promise<SignInResult>;
  readonly more?: ReactNode;
}) {
  const [code, setCode] = useState('');
  const work = useMutation({ mutationFn: () => send(code), onSuccess: proceed });
  return (
    <Form submit={() => work.mutate()}>
      <p className="text-soft">{about}</p>
      <TextField
        label={label}
        inputMode={isNumeric ? 'numeric' : 'text'}
        autoComplete="one-time-code"
        autoFocus
        value={code}
        onChange={event => setCode(event.target.value)}
        required
      />
      <FormError error={work.error} />
      <Button type="submit" look="primary" busy={work.isPending}>
        Continue
      </Button>
      <div className="grid gap-2">
        {more}
        <Button look="quiet" onClick={back}>
          Back
        </Button>
      </div>
    </Form>
  );
}

function TokenStep({
  back: onBack,
  onSignedIn: onDone,
}: {
  readonly back: () => void;
  readonly onSignedIn: () => void;
}) {
  const [text, setText] = useState('');
  const work = useMutation({
    mutationFn: async () => {
      const enteredToken = text.trim();
      if (!enteredToken.startsWith('bpt_'))
        throw new Error(
          'This is not a personal access token. Personal access tokens begin with bpt_; agent keys cannot sign in to the console.',
        );
      await checkToken(enteredToken);
      signIn(enteredToken);
    },
    onSuccess: onDone,
  });
  return (
    <div className="grid gap-5">
      <Form submit={() => work.mutate()}>
        <p className="text-soft">The token is kept only in this tab, until you close it.</p>
        <TextField
          label="Personal access token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          placeholder="bpt_…"
          value={text}
          onChange={event => setText(event.target.value)}
          aria-invalid={work.isError || undefined}
          required
        />
        <FormError error={work.error} />
        <Button type="submit" look="primary" busy={work.isPending}>
          Sign in
        </Button>
        <Button look="quiet" onClick={onBack}>
          Back
        </Button>
      </Form>
      <Help title="No token?">
        <p className="mb-3 text-sm text-soft">
          Run this command on the machine that runs Berth. It prints a sign-in link:
        </p>
        <CodeBlock code="npm run -s berth -- console" label="the command" />
      </Help>
    </div>
  );
}

export function Form({ submit, children }: { readonly submit: () => void; readonly children: ReactNode }) {
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    submit();
  };
  return (
    <form onSubmit={onSubmit} className="grid gap-4">
      {children}
    </form>
  );
}

const Help = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <div className="mt-5 border-t border-line pt-5">
    <h2 className="mb-2 text-sm font-semibold">{title}</h2>
    {children}
  </div>
);
