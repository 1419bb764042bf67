// /console/invitation: a person signs in or creates an account with the invitation, and then accepts it. The invited
// address must be verified.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { isPerson, markSignedInAsPerson, onSignInChange, signInState, signOut } from '../api/credentials.ts';
import { accountQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { FormError, LoadError } from '../ui/states.tsx';
import { NewAccountForm } from './new-account-form.tsx';
import { SignInForm } from './sign-in-form.tsx';
import { CenteredPage } from './surface.tsx';
import { VerifyEmailDialog } from './verify-email-dialog.tsx';

const STORAGE_KEY = 'berth.invitation';

export function InvitationPage() {
  const signInStatus = useSyncExternalStore(onSignInChange, signInState);
  const [secret] = useState(takeSecret);
  if (signInStatus === 'unknown') return null;
  if (secret === undefined)
    return (
      <CenteredPage
        title="Invitation"
        about="This address is incomplete. Open the complete link from the invitation."
      />
    );
  return signInStatus === 'signed_in' && isPerson() ? (
    <AcceptancePage secret={secret} />
  ) : (
    <InvitationStart secret={secret} />
  );
}

/** Keeps the secret for this tab, because signing in may reload the page. */
function takeSecret(): string | undefined {
  const secret = location.hash.slice(1);
  if (secret !== '') {
    sessionStorage.setItem(STORAGE_KEY, secret);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
}

function InvitationStart({ secret }: { readonly secret: string }) {
  const [isNew, setIsNew] = useState(true);
  return (
    <CenteredPage title="You are invited" about="Create an account with the invited address, or sign in to yours.">
      <div className="grid gap-5">
        {isNew ? (
          <NewAccountForm
            emailHint="The invited address."
            create={account => call('register', { body: { ...account, invitation: secret } })}
            onAccountCreated={markSignedInAsPerson}
          />
        ) : (
          <SignInForm />
        )}
        <Button look="quiet" onClick={() => setIsNew(!isNew)}>
          {isNew ? 'I have an account' : 'I have no account yet'}
        </Button>
      </div>
    </CenteredPage>
  );
}

function AcceptancePage({ secret }: { readonly secret: string }) {
  const { data: account, error, refetch } = useQuery(accountQuery);
  const [isVerifying, setIsVerifying] = useState(false);
  const client = useQueryClient();
  const work = useMutation({
    mutationFn: () => call('acceptInvitation', { body: { token: secret } }),
    onSuccess: ({ applicationId }) => {
      sessionStorage.removeItem(STORAGE_KEY);
      location.assign(`/console/a/${applicationId}`);
    },
    // An invitation that cannot be accepted is not offered again in this tab.
    onError: problem => problem instanceof ApiError && problem.status === 404 && sessionStorage.removeItem(STORAGE_KEY),
  });
  if (error && !account)
    return (
      <CenteredPage title="You are invited">
        <LoadError error={error} retry={() => void refetch()} />
      </CenteredPage>
    );
  if (!account) return null;
  return (
    <CenteredPage title="You are invited" about={`You are signed in as ${account.email ?? account.name}.`}>
      <div className="grid gap-3">
        {account.emailVerified ? (
          <Button look="primary" busy={work.isPending} onClick={() => work.mutate()}>
            Accept the invitation
          </Button>
        ) : (
          <>
            <p className="text-soft">The invitation is for an e-mail address, so first verify that it is yours.</p>
            <Button look="primary" onClick={() => setIsVerifying(true)}>
              Verify the e-mail address
            </Button>
          </>
        )}
        <FormError error={work.error} />
        <Button look="quiet" onClick={() => signOut()}>
          Use another account
        </Button>
      </div>
      {isVerifying && (
        <VerifyEmailDialog
          close={() => setIsVerifying(false)}
          onFinished={() => client.invalidateQueries({ queryKey: accountQuery.queryKey })}
        />
      )}
    </CenteredPage>
  );
}
