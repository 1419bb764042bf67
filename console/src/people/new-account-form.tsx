// The form for a new account: name, e-mail address and password. The component that shows the form sends the values,
// together with a set-up link or an invitation.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { SignInResult } from '../../../contract/sign-in.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';
import { NewPasswordField } from './new-password-field.tsx';
import { Form } from './sign-in-form.tsx';

export interface NewAccount {
  readonly name: string;
  readonly email: string;
  readonly password: string;
}

export function NewAccountForm({
  emailHint,
  create,
  onAccountCreated: onCreated,
}: {
  readonly emailHint?: string;
  readonly create: (account: NewAccount) => Promise<SignInResult>;
  readonly onAccountCreated: (result: SignInResult) => void;
}) {
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const work = useMutation({ mutationFn: () => create({ name, email, password }), onSuccess: onCreated });
  return (
    <Form submit={() => work.mutate()}>
      <TextField
        label="Your name"
        autoComplete="name"
        value={name}
        onChange={event => setName(event.target.value)}
        required
      />
      <TextField
        label="E-mail address"
        hint={emailHint}
        type="email"
        autoComplete="username"
        value={email}
        onChange={event => setEmail(event.target.value)}
        required
      />
      <NewPasswordField label="Password" value={password} change={setPassword} />
      <FormError error={work.error} />
      <Button type="submit" look="primary" busy={work.isPending}>
        Create the account
      </Button>
    </Form>
  );
}
