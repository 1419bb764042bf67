// The page behind the link that the first start of the server or `berth accounts link` prints. Asks for name, e-mail
// address and password, then offers to create a passkey.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.ts';
import { markSignedInAsPerson } from '../api/credentials.ts';
import { createPasskey, supportsPasskeys } from '../api/passkeys.ts';
import { Button } from '../ui/button.tsx';
import { FormError } from '../ui/states.tsx';
import { NewAccountForm } from './new-account-form.tsx';
import { nextPage } from './next-page.ts';
import { CenteredPage } from './surface.tsx';

export function SetUpAccount({ secret }: { readonly secret: string }) {
  const [isSetUp, setIsSetUp] = useState(false);
  if (isSetUp) return <OfferPasskey />;
  const continueSetUp = (): void => {
    markSignedInAsPerson();
    if (supportsPasskeys()) setIsSetUp(true);
    else location.assign(nextPage());
  };
  return (
    <CenteredPage title="Set up your account" about="This account owns the applications and keys of this installation.">
      <NewAccountForm
        create={account => call('setUpAccount', { body: { token: secret, ...account } })}
        // If the account has an authenticator app, a code is also needed, which the person enters on the sign-in page.
        onAccountCreated={({ status }) => (status === 'signed_in' ? continueSetUp() : location.assign('/signin'))}
      />
    </CenteredPage>
  );
}

function OfferPasskey() {
  const openNextPage = () => location.assign(nextPage());
  const work = useMutation({
    mutationFn: async () => {
      const challenge = await call('requestPasskeyRegistration', {});
      const response = await createPasskey(challenge);
      await call('addPasskey', { body: { ticket: challenge.ticket, name: 'First passkey', response } });
    },
    onSuccess: openNextPage,
  });
  return (
    <CenteredPage
      title="Add a passkey"
      about="A passkey signs you in without a password and cannot be phished. You can also add one later."
    >
      <div className="grid gap-3">
        <FormError error={work.error} />
        <Button look="primary" icon="keys" busy={work.isPending} onClick={() => work.mutate()}>
          Add a passkey
        </Button>
        <Button look="quiet" onClick={openNextPage}>
          Not now
        </Button>
      </div>
    </CenteredPage>
  );
}
