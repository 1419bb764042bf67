// The form that issues an agent key or an access token.
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { CheckField, TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { ExpiryField, expiresAtOf } from './expiry.tsx';

export interface CredentialForm<Scope extends string> {
  readonly name: string;
  readonly scopes: Scope[];
  readonly expiresAt?: string;
}

export function IssueCredential<Scope extends string, Issued>({
  title,
  placeholder,
  scopes: scopeChoices,
  defaultScopes: initialScopes = scopeChoices.map(([scope]) => scope),
  days: initialDays,
  allowsNoExpiry = false,
  additionalFields,
  issue,
  onFinished,
  close,
}: {
  readonly title: string;
  readonly placeholder: string;
  /** Scopes with a description of each. */
  readonly scopes: ReadonlyArray<readonly [Scope, string]>;
  /** The scopes that are selected initially. Default: all. */
  readonly defaultScopes?: readonly Scope[];
  /** The expiry that is selected initially, in days. An empty string means no expiry. */
  readonly days: string;
  /** Whether the credential may be issued without an expiry. */
  readonly allowsNoExpiry?: boolean;
  /** More fields of the form. */
  readonly additionalFields?: ReactNode;
  readonly issue: (form: CredentialForm<Scope>) => Promise<Issued>;
  readonly onFinished: (issued: Issued) => Promise<void>;
  readonly close: () => void;
}) {
  const [name, setName] = useState('');
  const [days, setDays] = useState(initialDays);
  const [scopes, setScopes] = useState<readonly Scope[]>(initialScopes);
  const work = useMutation({
    mutationFn: () => issue({ name, scopes: [...scopes], ...expiresAtOf(days) }),
    onSuccess: onFinished,
  });
  return (
    <FormDialog title={title} action="Issue" work={work} close={close} disabled={scopes.length === 0}>
      <TextField
        label="Name"
        placeholder={placeholder}
        value={name}
        onChange={event => setName(event.target.value)}
        maxLength={64}
        required
      />
      <fieldset className="grid gap-2.5">
        <legend className="mb-2 text-sm font-medium">Permissions</legend>
        {scopeChoices.map(([scope, scopeLabel]) => (
          <CheckField
            key={scope}
            label={scopeLabel}
            checked={scopes.includes(scope)}
            onChange={event =>
              setScopes(event.target.checked ? [...scopes, scope] : scopes.filter(one => one !== scope))
            }
          />
        ))}
      </fieldset>
      {additionalFields}
      <ExpiryField value={days} onChange={setDays} allowsNoExpiry={allowsNoExpiry} />
    </FormDialog>
  );
}
