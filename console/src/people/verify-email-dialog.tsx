// Sends a code to the e-mail address of the account, and lets the person enter it.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';

export function VerifyEmailDialog({
  close,
  onFinished: onDone,
}: {
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const [ticket, setTicket] = useState<string | undefined>();
  const [code, setCode] = useState('');
  const work = useMutation({
    mutationFn: async () => {
      if (ticket === undefined) return setTicket((await call('requestEmailVerification', {})).ticket);
      await call('verifyEmail', { body: { ticket, code } });
      await onDone();
      close();
    },
  });
  return (
    <FormDialog
      title="Verify the e-mail address"
      action={ticket === undefined ? 'Send a code' : 'Verify'}
      work={work}
      close={close}
    >
      {ticket === undefined ? (
        <p className="text-soft">
          A code will be sent to the address. Without a mail server, the operator can read the code with berth outbox.
        </p>
      ) : (
        <TextField
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          value={code}
          onChange={event => setCode(event.target.value)}
          required
        />
      )}
    </FormDialog>
  );
}
