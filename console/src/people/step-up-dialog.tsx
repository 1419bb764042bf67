// Asks for a fresh proof of identity, as strong as the account can give.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import type { CurrentAccount } from '../../../contract/sign-in.ts';
import { call } from '../api/call.ts';
import { askPasskey } from '../api/passkeys.ts';
import { accountQuery } from '../api/queries.ts';
import { endStepUp, isStepUpPending, onStepUp } from '../api/step-up.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';
import { Form } from './sign-in-form.tsx';

export function StepUpDialog() {
  const isOpen = useSyncExternalStore(onStepUp, isStepUpPending);
  return isOpen ? <StepUp /> : null;
}

function StepUp() {
  const { data: account, error } = useQuery(accountQuery);
  return (
    <Dialog
      open
      onClose={() => endStepUp(false)}
      title="Confirm that it is you"
      about="This requires a fresh proof of your identity, which is valid for five minutes."
    >
      <FormError error={error} />
      {account && <Proof account={account} />}
    </Dialog>
  );
}

function Proof({ account }: { readonly account: CurrentAccount }) {
  const strongestAcr = account.session?.strongestAcr;
  const [text, setText] = useState('');
  const [usesRecoveryCode, setUsesRecoveryCode] = useState(false);
  const client = useQueryClient();
  const work = useMutation({
    mutationFn: async () => {
      if (strongestAcr === 'phr') {
        const challenge = await call('requestStepUpChallenge', {});
        const { ticket } = challenge;
        return call('stepUp', { body: { method: 'passkey', ticket, response: await askPasskey(challenge) } });
      }
      if (strongestAcr === 'berth:2')
        return call('stepUp', { body: { method: usesRecoveryCode ? 'recovery_code' : 'totp', code: text } });
      return call('stepUp', { body: { method: 'password', password: text } });
    },
    onSuccess: updatedAccount => {
      client.setQueryData(accountQuery.queryKey, updatedAccount);
      endStepUp(true);
    },
  });
  const needsCode = strongestAcr === 'berth:2';
  return (
    <Form submit={() => work.mutate()}>
      {strongestAcr === 'phr' ? (
        <p className="text-soft">Use one of your passkeys.</p>
      ) : (
        <TextField
          label={needsCode ? (usesRecoveryCode ? 'Recovery code' : 'Code from your authenticator app') : 'Password'}
          type={needsCode ? 'text' : 'password'}
          inputMode={needsCode && !usesRecoveryCode ? 'numeric' : 'text'}
          autoComplete={needsCode ? 'one-time-code' : 'current-password'}
          value={text}
          onChange={event => setText(event.target.value)}
          required
        />
      )}
      <FormError error={work.error} />
      <div className="flex flex-wrap justify-end gap-2">
        {needsCode && (
          <Button look="quiet" onClick={() => setUsesRecoveryCode(!usesRecoveryCode)}>
            {usesRecoveryCode ? 'Use the app' : 'Use a recovery code'}
          </Button>
        )}
        <Button onClick={() => endStepUp(false)}>Cancel</Button>
        <Button type="submit" look="primary" busy={work.isPending}>
          Confirm
        </Button>
      </div>
    </Form>
  );
}
