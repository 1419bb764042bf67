// /signin: the sign-in page, to which other pages redirect. The link that sets up an account also opens this page.
import { useState } from 'react';
import { nextPage } from './next-page.ts';
import { SetUpAccount } from './set-up-account.tsx';
import { SignInForm } from './sign-in-form.tsx';
import { CenteredPage } from './surface.tsx';

export function SignInPage() {
  const [setUpSecret] = useState(takeSetUpSecret);
  if (setUpSecret !== undefined) return <SetUpAccount secret={setUpSecret} />;
  return (
    <CenteredPage title="Sign in to Berth">
      <SignInForm onSignedIn={() => location.assign(nextPage())} />
    </CenteredPage>
  );
}

/** The secret is removed from the address at once, so that it is not in the history. */
function takeSetUpSecret(): string | undefined {
  const secret = new URLSearchParams(location.hash.slice(1)).get('setup') ?? undefined;
  if (secret !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return secret;
}
