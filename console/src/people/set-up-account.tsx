// The link of the first start, or of `berth accounts link`: name, e-mail address and password; then, if they want, a passkey.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.ts';
import { signedInAsPerson } from '../api/credentials.ts';
import { createPasskey, hasPasskeys } from '../api/passkeys.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';
import { nextPage } from './next-page.ts';
import { PASSWORD_CHARACTERS_MIN } from './password-rules.ts';
import { Form } from './sign-in-form.tsx';
import { Surface } from './surface.tsx';

export function SetUpAccount({ secret }: { readonly secret: string }) {
  const [isSetUp, setIsSetUp] = useState(false);
  if (isSetUp) return <OfferPasskey />;
  return (
    <Surface title="Set up your account" about="It owns the applications and keys of this installation.">
      <SetUpForm
        secret={secret}
        done={() => {
          signedInAsPerson();
          if (hasPasskeys()) setIsSetUp(true);
          else location.assign(nextPage());
        }}
      />
    </Surface>
  );
}

function SetUpForm({ secret, done }: { readonly secret: string; readonly done: () => void }) {
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const work = useMutation({
    mutationFn: () => call('setUpAccount', { body: { token: secret, name, email, password } }),
    // An account with an authenticator app signs in with its code too.
    onSuccess: ({ status }) => (status === 'signed_in' ? done() : location.assign('/signin')),
  });
  return (
    <Form submit={() => work.mutate()}>
      <TextField
        label="Your name"
        autoComplete="name"
        value={name}
        onChange={event => setName(event.target.value)}
        required
      />
      <TextField
        label="E-mail address"
        type="email"
        autoComplete="username"
        value={email}
        onChange={event => setEmail(event.target.value)}
        required
      />
      <TextField
        label="Password"
        hint={`At least ${PASSWORD_CHARACTERS_MIN} characters, of any kind.`}
        type="password"
        autoComplete="new-password"
        minLength={PASSWORD_CHARACTERS_MIN}
        value={password}
        onChange={event => setPassword(event.target.value)}
        required
      />
      <FormError error={work.error} />
      <Button type="submit" look="primary" busy={work.isPending}>
        Create the account
      </Button>
    </Form>
  );
}

function OfferPasskey() {
  const go = () => location.assign(nextPage());
  const work = useMutation({
    mutationFn: async () => {
      const challenge = await call('requestPasskeyRegistration', {});
      const response = await createPasskey(challenge);
      await call('addPasskey', { body: { ticket: challenge.ticket, name: 'First passkey', response } });
    },
    onSuccess: go,
  });
  return (
    <Surface
      title="Add a passkey"
      about="It signs you in without a password, and cannot be given to a false page. You can also add one later."
    >
      <div className="grid gap-3">
        <FormError error={work.error} />
        <Button look="primary" icon="keys" busy={work.isPending} onClick={() => work.mutate()}>
          Add a passkey
        </Button>
        <Button look="quiet" onClick={go}>
          Not now
        </Button>
      </div>
    </Surface>
  );
}
