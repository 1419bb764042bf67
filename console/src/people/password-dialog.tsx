// Sets the password of the account. Whoever is signed in elsewhere is signed out.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.ts';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { PASSWORD_CHARACTERS_MIN } from './password-rules.ts';

export function PasswordDialog({ close, done }: { readonly close: () => void; readonly done: () => Promise<void> }) {
  const [password, setPassword] = useState('');
  const work = useMutation({
    mutationFn: async () => {
      await call('changePassword', { body: { password } });
      await done();
    },
    onSuccess: close,
  });
  return (
    <FormDialog title="Set the password" action="Set the password" work={work} close={close}>
      <TextField
        label="New password"
        hint={`At least ${PASSWORD_CHARACTERS_MIN} characters, of any kind. Your other browsers are signed out.`}
        type="password"
        autoComplete="new-password"
        minLength={PASSWORD_CHARACTERS_MIN}
        value={password}
        onChange={event => setPassword(event.target.value)}
        required
      />
    </FormDialog>
  );
}
