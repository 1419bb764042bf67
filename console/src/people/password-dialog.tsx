// Sets the password of the account. All other browsers are signed out.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.ts';
import { FormDialog } from '../ui/form-dialog.tsx';
import { NewPasswordField } from './new-password-field.tsx';

export function PasswordDialog({
  close,
  onFinished: onDone,
}: {
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const [password, setPassword] = useState('');
  const work = useMutation({
    mutationFn: async () => {
      await call('changePassword', { body: { password } });
      await onDone();
    },
    onSuccess: close,
  });
  return (
    <FormDialog title="Set the password" action="Set the password" work={work} close={close}>
      <NewPasswordField
        label="New password"
        hint="Your other browsers will be signed out."
        value={password}
        change={setPassword}
      />
    </FormDialog>
  );
}
