// The account of the person who is signed in: the sign-in methods, and the browsers in which the person is signed in.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { CurrentAccount, SignedInSession } from '../../../contract/sign-in.ts';
import { call, isOffered } from '../api/call.ts';
import { createPasskey, supportsPasskeys } from '../api/passkeys.ts';
import { accountQuery, signedInSessionsQuery } from '../api/queries.ts';
import { AuthenticatorDialog } from '../people/authenticator-dialog.tsx';
import { PasswordDialog } from '../people/password-dialog.tsx';
import { RecoveryCodesDialog } from '../people/recovery-codes-dialog.tsx';
import { VerifyEmailDialog } from '../people/verify-email-dialog.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { browserName } from './browser-name.ts';
import { Notifications } from './notifications.tsx';

export function AccountPage() {
  const { data: account, error, refetch } = useQuery(accountQuery);
  return (
    <Page title="Account" about="How you sign in, and where you are signed in.">
      {error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : !account ? (
        <LoadingRows contentLabel="your account" />
      ) : account.session ? (
        <div className="grid max-w-3xl gap-5">
          <Profile account={account} />
          <Passkeys account={account} />
          <Authenticator account={account} />
          {isOffered('readNotifications') && <Notifications />}
          <Sessions />
        </div>
      ) : (
        <EmptyState icon="keys" title="You are signed in with an access token">
          Sign in with your e-mail address to see and change your sign-in methods.
        </EmptyState>
      )}
    </Page>
  );
}

const useRefresh = () => {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: accountQuery.queryKey });
};

const Row = ({
  title,
  children,
  actions,
}: {
  readonly title: React.ReactNode;
  readonly children?: React.ReactNode;
  readonly actions?: React.ReactNode;
}) => (
  <div className="flex min-h-14 flex-wrap items-center justify-between gap-x-4 gap-y-2 px-4 py-2.5">
    <div className="min-w-0">
      <p className="text-sm font-medium break-words">{title}</p>
      {children && <p className="text-sm break-words text-soft">{children}</p>}
    </div>
    {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
  </div>
);

function Profile({ account }: { readonly account: CurrentAccount }) {
  const [openDialog, setOpenDialog] = useState<'name' | 'password' | 'email' | undefined>();
  const close = () => setOpenDialog(undefined);
  const refresh = useRefresh();
  return (
    <Panel title="Profile">
      <div className="divide-y divide-line">
        <Row title={account.name} actions={<Button onClick={() => setOpenDialog('name')}>Rename</Button>}>
          Other members see this name.
        </Row>
        <Row
          title={account.email}
          actions={!account.emailVerified && <Button onClick={() => setOpenDialog('email')}>Verify</Button>}
        >
          {account.emailVerified ? 'Verified' : 'Not verified: invitations to this address cannot be accepted yet.'}
        </Row>
        <Row title="Password" actions={<Button onClick={() => setOpenDialog('password')}>Change</Button>}>
          {account.hasPassword ? 'Set' : 'Not set'}
        </Row>
      </div>
      {openDialog === 'name' && <RenameDialog name={account.name} close={close} onFinished={refresh} />}
      {openDialog === 'password' && <PasswordDialog close={close} onFinished={refresh} />}
      {openDialog === 'email' && <VerifyEmailDialog close={close} onFinished={refresh} />}
    </Panel>
  );
}

function RenameDialog({
  name,
  close,
  onFinished,
}: {
  readonly name: string;
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const [text, setText] = useState(name);
  const work = useMutation({
    mutationFn: () => call('changeAccount', { body: { name: text } }),
    onSuccess: async () => {
      await onFinished();
      close();
    },
  });
  return (
    <FormDialog title="Rename the account" action="Rename" work={work} close={close}>
      <TextField label="Your name" value={text} onChange={event => setText(event.target.value)} required />
    </FormDialog>
  );
}

function Passkeys({ account }: { readonly account: CurrentAccount }) {
  const [isAdding, setIsAdding] = useState(false);
  const [passkeyToRemove, setPasskeyToRemove] = useState<CurrentAccount['passkeys'][number] | undefined>();
  const refresh = useRefresh();
  return (
    <Panel
      title="Passkeys"
      actions={
        supportsPasskeys() && (
          <Button icon="plus" onClick={() => setIsAdding(true)}>
            Add a passkey
          </Button>
        )
      }
    >
      <div className="divide-y divide-line">
        {account.passkeys.map(passkey => (
          <Row
            key={passkey.id}
            title={passkey.name}
            actions={
              <Button look="quiet" aria-label={`Remove ${passkey.name}`} onClick={() => setPasskeyToRemove(passkey)}>
                Remove
              </Button>
            }
          >
            Added <Ago time={passkey.createdAt} />
            {passkey.lastUsedAt && (
              <>
                , used <Ago time={passkey.lastUsedAt} />
              </>
            )}
          </Row>
        ))}
        {account.passkeys.length === 0 && (
          <Row title="No passkey yet">
            {supportsPasskeys()
              ? 'A passkey signs you in without a password and cannot be phished.'
              : 'Passkeys need a host name: open the console at http://localhost, or over https at the host name of this service.'}
          </Row>
        )}
      </div>
      {isAdding && <AddPasskeyDialog close={() => setIsAdding(false)} onFinished={refresh} />}
      {passkeyToRemove && (
        <ConfirmDialog
          title={`Remove ${passkeyToRemove.name}?`}
          action="Remove"
          close={() => setPasskeyToRemove(undefined)}
          onConfirm={async () => {
            await call('removePasskey', { params: { id: passkeyToRemove.id } });
            await refresh();
          }}
        >
          This passkey can no longer be used to sign in. Remove it from your device too.
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function AddPasskeyDialog({
  close,
  onFinished,
}: {
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const [name, setName] = useState('');
  const work = useMutation({
    mutationFn: async () => {
      const challenge = await call('requestPasskeyRegistration', {});
      const response = await createPasskey(challenge);
      await call('addPasskey', { body: { ticket: challenge.ticket, name, response } });
      await onFinished();
    },
    onSuccess: close,
  });
  return (
    <FormDialog title="Add a passkey" action="Add" work={work} close={close}>
      <TextField
        label="Name"
        hint="Helps you recognize the passkey, for example the name of the device."
        value={name}
        onChange={event => setName(event.target.value)}
        required
      />
    </FormDialog>
  );
}

function Authenticator({ account }: { readonly account: CurrentAccount }) {
  const [openDialog, setOpenDialog] = useState<'add' | 'remove' | undefined>();
  const [newRecoveryCodes, setNewRecoveryCodes] = useState<readonly string[] | undefined>();
  const refresh = useRefresh();
  const renew = useMutation({
    mutationFn: () => call('renewRecoveryCodes', {}),
    onSuccess: ({ recoveryCodes }) => setNewRecoveryCodes(recoveryCodes),
  });
  return (
    <Panel title="Authenticator app">
      <div className="divide-y divide-line">
        <Row
          title={account.totpEnabled ? 'Required at each sign-in with a password' : 'Not used'}
          actions={
            account.totpEnabled ? (
              <Button look="danger" onClick={() => setOpenDialog('remove')}>
                Stop using it
              </Button>
            ) : (
              <Button onClick={() => setOpenDialog('add')}>Add an authenticator app</Button>
            )
          }
        >
          {!account.totpEnabled && 'After your password, you enter a code from an app on your phone.'}
        </Row>
        {account.totpEnabled && (
          <Row
            title={`${account.recoveryCodesLeft} recovery codes left`}
            actions={
              <Button busy={renew.isPending} onClick={() => renew.mutate()}>
                Replace them
              </Button>
            }
          >
            {renew.error ? String(renew.error.message) : 'Each can be used once in place of a code from the app.'}
          </Row>
        )}
      </div>
      {openDialog === 'add' && (
        <AuthenticatorDialog
          close={() => setOpenDialog(undefined)}
          onFinished={recoveryCodes => {
            setOpenDialog(undefined);
            setNewRecoveryCodes(recoveryCodes);
          }}
        />
      )}
      {openDialog === 'remove' && (
        <ConfirmDialog
          title="Stop using the authenticator app?"
          action="Stop using it"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('removeTotp', {});
            await refresh();
          }}
        >
          You will then sign in with your password alone. The recovery codes stop working.
        </ConfirmDialog>
      )}
      {newRecoveryCodes && (
        <RecoveryCodesDialog
          codes={newRecoveryCodes}
          close={() => {
            setNewRecoveryCodes(undefined);
            void refresh();
          }}
        />
      )}
    </Panel>
  );
}

function Sessions() {
  const { data, error, refetch } = useQuery(signedInSessionsQuery);
  const endOtherSessions = useMutation({ mutationFn: () => call('endOtherSessions', {}), onSuccess: () => refetch() });
  const sessions = data?.data ?? [];
  return (
    <Panel
      title="Signed in"
      actions={
        sessions.length > 1 && (
          <Button look="quiet" busy={endOtherSessions.isPending} onClick={() => endOtherSessions.mutate()}>
            Sign out everywhere else
          </Button>
        )
      }
    >
      {error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : !data ? (
        <LoadingRows contentLabel="your sessions" rows={2} />
      ) : (
        <div className="divide-y divide-line">
          {sessions.map(session => (
            <SessionRow key={session.id} session={session} onFinished={() => refetch()} />
          ))}
        </div>
      )}
    </Panel>
  );
}

function SessionRow({
  session,
  onFinished,
}: {
  readonly session: SignedInSession;
  readonly onFinished: () => Promise<unknown>;
}) {
  const end = useMutation({
    mutationFn: () => call('endSignedInSession', { params: { id: session.id } }),
    onSuccess: onFinished,
  });
  return (
    <Row
      title={`${browserName(session.userAgent)}${session.isCurrent ? ' (this browser)' : ''}`}
      actions={
        !session.isCurrent && (
          <Button
            look="quiet"
            aria-label={`Sign out ${browserName(session.userAgent)}`}
            busy={end.isPending}
            onClick={() => end.mutate()}
          >
            Sign out
          </Button>
        )
      }
    >
      {session.lastUsedIp}
      {session.lastUsedAt && (
        <>
          , used <Ago time={session.lastUsedAt} />
        </>
      )}
    </Row>
  );
}
