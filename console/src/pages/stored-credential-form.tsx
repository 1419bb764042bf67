// The dialog that creates or rotates a stored credential. The value is read from its form fields when it is sent, and
// is never in the state of the page. The fields are emptied when the value has been stored.
import { useMutation } from '@tanstack/react-query';
import { useId, useRef, useState } from 'react';
import type { CredentialValue, StoredCredential, StoredCredentialType } from '../../../contract/stored-credentials.ts';
import { call } from '../api/call.ts';
import { SelectField, TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { CREDENTIAL_TYPES, hasOrigins, type SecretField, typeNamed } from './stored-credential-types.ts';

export function StoredCredentialForm({
  app,
  credential,
  onFinished,
  close,
}: {
  readonly app: string;
  /** If absent, the dialog creates a new credential. */
  readonly credential?: StoredCredential;
  readonly onFinished: () => Promise<void>;
  readonly close: () => void;
}) {
  const [id, setId] = useState(credential?.id ?? '');
  const [type, setType] = useState<StoredCredentialType>(credential?.type ?? 'api_key');
  const [label, setLabel] = useState(credential?.label ?? '');
  const [hosts, setHosts] = useState(credential?.hosts.join(', ') ?? '');
  const [origins, setOrigins] = useState(credential?.origins.join(', ') ?? '');
  const [expiryDate, setExpiryDate] = useState('');
  const valueFields = useRef<HTMLFieldSetElement>(null);
  const work = useMutation({
    mutationFn: async () => {
      await call('writeStoredCredential', {
        params: { appId: app, id: id.trim() },
        ...(credential ? { headers: { 'if-match': `"${credential.revision}"` } } : {}),
        body: {
          ...{ type, value: await readValue(controlsOf(valueFields.current)) },
          ...(label.trim() === '' ? {} : { label: label.trim() }),
          ...(hasOrigins(type) ? { origins: splitList(origins) } : { hosts: splitList(hosts) }),
          ...(expiryDate === '' ? {} : { expiresAt: `${expiryDate}T00:00:00Z` }),
        },
      });
      for (const control of controlsOf(valueFields.current)) control.value = '';
    },
    onSuccess: onFinished,
  });
  const { description: about, fields } = CREDENTIAL_TYPES[type];
  return (
    <FormDialog
      title={credential ? `Rotate ${credential.id}` : 'Add a credential'}
      action={credential ? 'Rotate' : 'Add'}
      work={work}
      close={close}
    >
      {credential ? (
        <p className="text-sm text-soft">
          Calls use the new value at once. The current value can be restored for 24 hours, then it is destroyed.
        </p>
      ) : (
        <>
          <TextField
            label="Id"
            hint="Operations refer to the credential by this id: lowercase letters, digits and hyphens."
            placeholder="shop-api"
            value={id}
            onChange={event => setId(event.target.value)}
            maxLength={64}
            spellCheck={false}
            autoCapitalize="none"
            required
          />
          <SelectField
            label="Type"
            hint={about}
            value={type}
            onChange={event => setType(typeNamed(event.target.value))}
          >
            {Object.entries(CREDENTIAL_TYPES).map(([one, { name }]) => (
              <option key={one} value={one}>
                {name}
              </option>
            ))}
          </SelectField>
        </>
      )}
      <fieldset ref={valueFields} className="grid gap-4 rounded-lg border border-line p-3 pt-2">
        <legend className="px-1 text-sm text-soft">Value, not shown again</legend>
        {fields.map(field => (
          <Secret key={`${type} ${field.name}`} field={field} />
        ))}
      </fieldset>
      {hasOrigins(type) ? (
        <TextField
          label="Origins"
          hint="Websites where the credential may be typed, separated by commas. It is typed nowhere else."
          placeholder="https://bank.example"
          value={origins}
          onChange={event => setOrigins(event.target.value)}
          spellCheck={false}
          required
        />
      ) : (
        <TextField
          label="Hosts"
          hint="Hosts that operations may send the credential to, separated by commas. It is sent nowhere else."
          placeholder="api.shop.example"
          value={hosts}
          onChange={event => setHosts(event.target.value)}
          spellCheck={false}
          required
        />
      )}
      <TextField
        label="Display name"
        hint="Optional."
        value={label}
        onChange={event => setLabel(event.target.value)}
        maxLength={100}
      />
      <TextField
        label="Expires"
        hint={`Operations stop using the credential on this day (UTC). If empty, ${credential ? 'the new value does not expire' : 'it never expires'}.`}
        type="date"
        value={expiryDate}
        onChange={event => setExpiryDate(event.target.value)}
      />
    </FormDialog>
  );
}

type Control = HTMLInputElement | HTMLTextAreaElement;

/** The secret is kept only in the DOM element. */
function Secret({ field: { name, label, hint, as, optional = false } }: { readonly field: SecretField }) {
  const id = useId();
  const inputProps = { name, required: !optional, autoComplete: 'off', spellCheck: false } as const;
  if (as === 'text')
    return (
      <div>
        <label htmlFor={id} className="mb-1 block text-sm font-medium">
          {label}
        </label>
        <textarea
          {...{ id, ...inputProps }}
          rows={5}
          placeholder="-----BEGIN PRIVATE KEY-----"
          className="w-full rounded-md border border-line-strong bg-raised px-2.5 py-1.5 font-mono text-xs"
        />
      </div>
    );
  if (as === 'file')
    return (
      <div className="min-w-0">
        <label htmlFor={id} className="mb-1 block text-sm font-medium">
          {label}
        </label>
        <input {...{ id, ...inputProps }} type="file" className="w-full text-sm text-soft" />
      </div>
    );
  const textFieldProps = {
    ...inputProps,
    autoComplete: as === 'line' ? 'off' : 'new-password',
    autoCapitalize: 'none',
  };
  return <TextField {...{ label, hint, ...textFieldProps }} type={as === 'line' ? 'text' : 'password'} />;
}

const controlsOf = (fields: HTMLFieldSetElement | null): readonly Control[] => [
  ...(fields?.querySelectorAll<Control>('input, textarea') ?? []),
];

async function readValue(controls: readonly Control[]): Promise<CredentialValue> {
  const members = await Promise.all(controls.map(readMember));
  return Object.assign({}, ...members);
}

async function readMember(control: Control): Promise<CredentialValue> {
  const file = control instanceof HTMLInputElement ? control.files?.[0] : undefined;
  if (file) return { name: file.name, base64: await base64Of(file) };
  return control.value === '' ? {} : { [control.name]: control.value };
}

async function base64Of(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
}

const splitList = (text: string): string[] => text.split(/[\s,]+/).filter(part => part !== '');
