// /device: a program shows a code, and a person decides here what the program may do (RFC 8628). A code from a link is
// used only after the person has confirmed it. What the program states about itself is labeled as a statement of the
// program.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import type { DeviceRequest } from '../../../contract/device.ts';
import type { TokenScope } from '../../../contract/tokens.ts';
import { call } from '../api/call.ts';
import { isPerson, onSignInChange, signInState } from '../api/credentials.ts';
import { accountQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { CheckField, TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';
import { fullTime } from '../ui/time.tsx';
import { Form, SignInForm } from './sign-in-form.tsx';
import { StepUpDialog } from './step-up-dialog.tsx';
import { CenteredPage } from './surface.tsx';

const TITLE = 'Approve a device';

export function DevicePage() {
  const signInStatus = useSyncExternalStore(onSignInChange, signInState);
  const [codeFromLink] = useState(takeCode);
  if (signInStatus === 'unknown') return null;
  if (signInStatus === 'signed_out' || !isPerson())
    return (
      <CenteredPage title="Sign in to approve a device" about="A program asks for access to your applications.">
        <SignInForm />
      </CenteredPage>
    );
  return (
    <>
      <Approval initialCode={codeFromLink} />
      <StepUpDialog />
    </>
  );
}

/** Takes the code from the link, if the person followed a link. */
function takeCode(): string | undefined {
  const code = location.hash.slice(1);
  if (code === '') return undefined;
  history.replaceState(null, '', location.pathname);
  return /^[A-Za-z0-9]{4}-?[A-Za-z0-9]{4}$/.test(code) ? code.toUpperCase() : undefined;
}

function Approval({ initialCode: linkedCode }: { readonly initialCode: string | undefined }) {
  const [request, setRequest] = useState<{ code: string; deviceRequest: DeviceRequest } | undefined>();
  const [outcome, setOutcome] = useState<'approved' | 'denied' | undefined>();
  const { data: account } = useQuery(accountQuery);
  if (outcome === 'approved')
    return <CenteredPage title="Approved" about="The program now has access. You can close this page." />;
  if (outcome === 'denied')
    return <CenteredPage title="Denied" about="The program has no access. You can close this page." />;
  if (!request)
    return (
      <CenteredPage title={TITLE} about={account && `You are signed in as ${account.email ?? account.name}.`}>
        <CodeStep
          codeToConfirm={linkedCode}
          onRequestFound={(code, deviceRequest) => setRequest({ code, deviceRequest })}
        />
      </CenteredPage>
    );
  return (
    <CenteredPage title={TITLE} about={account && `You are signed in as ${account.email ?? account.name}.`}>
      <Decision code={request.code} deviceRequest={request.deviceRequest} onOutcome={setOutcome} />
    </CenteredPage>
  );
}

function CodeStep({
  codeToConfirm: linkedCode,
  onRequestFound: onFound,
}: {
  readonly codeToConfirm: string | undefined;
  readonly onRequestFound: (code: string, deviceRequest: DeviceRequest) => void;
}) {
  const [code, setCode] = useState('');
  const work = useMutation({
    mutationFn: (enteredCode: string) => call('readDeviceRequest', { query: { user_code: enteredCode } }),
    onSuccess: (deviceRequest, enteredCode) => onFound(enteredCode, deviceRequest),
  });
  return (
    <div className="grid gap-5">
      {linkedCode && (
        <div className="grid gap-3 rounded-lg border border-line bg-raised p-4">
          <p>Does your device show exactly this code?</p>
          <p className="font-mono text-xl tracking-widest">{linkedCode}</p>
          <Button look="primary" busy={work.isPending} onClick={() => work.mutate(linkedCode)}>
            Yes, it shows this code
          </Button>
        </div>
      )}
      <Form submit={() => work.mutate(code)}>
        <TextField
          label={linkedCode ? 'The program shows a different code' : 'Code'}
          hint="The program that wants access shows a code of eight characters."
          placeholder="XXXX-XXXX"
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          value={code}
          onChange={event => setCode(event.target.value)}
          required
        />
        <FormError error={work.error} />
        <Button type="submit" look={linkedCode ? 'plain' : 'primary'} busy={work.isPending}>
          Continue
        </Button>
      </Form>
    </div>
  );
}

const SCOPE_TEXTS: Readonly<Partial<Record<TokenScope, string>>> = {
  'applications:read': 'Read applications, keys and limits',
  'applications:write': 'Create and rename applications',
  'keys:write': 'Issue and revoke agent keys',
  'limits:write': 'Change limits',
  'members:write': 'Invite and remove members',
  'audit:read': 'Read the audit log',
  'account:tokens': 'List, issue and revoke access tokens',
};

function Decision({
  code,
  deviceRequest,
  onOutcome: onDecided,
}: {
  readonly code: string;
  readonly deviceRequest: DeviceRequest;
  readonly onOutcome: (outcome: 'approved' | 'denied') => void;
}) {
  const requestedScopes = deviceRequest.scopes as TokenScope[]; // The service has validated the scopes.
  const [scopes, setScopes] = useState<readonly TokenScope[]>(requestedScopes);
  const [apps, setApps] = useState<readonly string[]>([]);
  const [createsApplication, setCreatesApplication] = useState(false);
  const work = useMutation({
    mutationFn: (decision: 'approve' | 'deny') =>
      call('decideDeviceAuthorization', {
        body:
          decision === 'deny'
            ? { userCode: code, decision }
            : { userCode: code, decision, applicationIds: createsApplication ? [] : [...apps], scopes: [...scopes] },
      }),
    onSuccess: ({ status }) => onDecided(status),
  });
  const mayCreate = scopes.includes('applications:write');
  return (
    <div className="grid gap-5">
      <section className="rounded-lg border border-line bg-raised p-4">
        <h2 className="mb-2 text-sm font-semibold">The program says</h2>
        <dl className="grid grid-cols-[96px_minmax(0,1fr)] gap-x-3 gap-y-1.5 text-sm">
          <Fact name="Name">
            {deviceRequest.client.id}
            {!deviceRequest.client.verified && <span className="text-soft"> (not verified)</span>}
          </Fact>
          {deviceRequest.deviceName && <Fact name="Device">{deviceRequest.deviceName}</Fact>}
          <Fact name="Address">{deviceRequest.requestedFrom.ip}</Fact>
          <Fact name="Asked">{fullTime(deviceRequest.startedAt)}</Fact>
        </dl>
      </section>
      {!deviceRequest.requestedFrom.isYourNetwork && (
        <p role="alert" className="rounded-md bg-warn-soft px-3 py-2 text-sm">
          The request came from a different network than yours. Approve it only if you started the program yourself,
          just now. Nobody should ever send you a code.
        </p>
      )}
      <fieldset className="grid gap-2">
        <legend className="mb-1 text-sm font-semibold">It may</legend>
        {requestedScopes.map(scope => (
          <CheckField
            key={scope}
            label={SCOPE_TEXTS[scope] ?? scope}
            checked={scopes.includes(scope)}
            onChange={event => setScopes(toggle(scopes, scope, event.target.checked))}
          />
        ))}
      </fieldset>
      <fieldset className="grid gap-2">
        <legend className="mb-1 text-sm font-semibold">In these applications</legend>
        {deviceRequest.applications.map(({ id, name, role }) => (
          <CheckField
            key={id}
            label={name}
            hint={`You are its ${role}.`}
            checked={!createsApplication && apps.includes(id)}
            disabled={createsApplication}
            onChange={event => setApps(toggle(apps, id, event.target.checked))}
          />
        ))}
        {mayCreate && (
          <CheckField
            label="In one application that it creates"
            hint="And in no other."
            checked={createsApplication}
            onChange={event => setCreatesApplication(event.target.checked)}
          />
        )}
        {deviceRequest.applications.length === 0 && !mayCreate && (
          <p className="text-sm text-soft">There is no application that you may give access to.</p>
        )}
      </fieldset>
      <FormError error={work.error} />
      <div className="flex justify-end gap-2">
        <Button look="danger" busy={work.isPending} onClick={() => work.mutate('deny')}>
          Deny
        </Button>
        <Button
          look="primary"
          busy={work.isPending}
          disabled={scopes.length === 0 || !(createsApplication ? mayCreate : apps.length > 0)}
          onClick={() => work.mutate('approve')}
        >
          Approve
        </Button>
      </div>
    </div>
  );
}

const Fact = ({ name, children }: { readonly name: string; readonly children: React.ReactNode }) => (
  <>
    <dt className="text-soft">{name}</dt>
    <dd className="min-w-0 break-words">{children}</dd>
  </>
);

const toggle = <T,>(all: readonly T[], one: T, isSelected: boolean): readonly T[] =>
  isSelected ? [...all, one] : all.filter(other => other !== one);
