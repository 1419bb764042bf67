// Asks for confirmation before the token of a link replaces the current sign-in.
import { useSyncExternalStore } from 'react';
import { answerOffer, checkToken, offeredToken, onSignInChange } from '../api/credentials.ts';
import { ConfirmDialog } from '../ui/confirm.tsx';

export function SwitchSignIn() {
  const tokenFromLink = useSyncExternalStore(onSignInChange, offeredToken);
  if (tokenFromLink === undefined) return null;
  return (
    <ConfirmDialog
      title="Sign in with another token?"
      action="Switch"
      close={() => answerOffer(false)}
      onConfirm={async () => {
        await checkToken(tokenFromLink);
        answerOffer(true);
      }}
    >
      You are already signed in, and this link contains the token of another sign-in. Switch only if you asked for the
      link: what you do after that is done in its account.
    </ConfirmDialog>
  );
}
