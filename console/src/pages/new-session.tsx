// The form for a new session. It also shows the create request as code.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { call } from '../api/call.ts';
import { contextsQuery } from '../api/queries.ts';
import { Button, buttonClass, IconButton } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { CheckField, SelectField, TextField } from '../ui/form.tsx';
import { Icon } from '../ui/icon.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { FormError } from '../ui/states.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { LANGUAGES, type Language, requestCode } from './request-code.ts';
import { INITIAL_FORM, requestOf, type SessionForm } from './session-form.ts';

const SIZES = {
  '1280x720': 'Desktop, 1280 × 720',
  '1440x900': 'Desktop, 1440 × 900',
  '1920x1080': 'Desktop, 1920 × 1080',
  '820x1180': 'Tablet, 820 × 1180',
  '390x844': 'Phone, 390 × 844',
} as const;

export function NewSessionPage({ app }: { readonly app: string }) {
  const [form, setForm] = useState(INITIAL_FORM);
  const [language, setLanguage] = useState<Language>('curl');
  const client = useQueryClient();
  const navigate = useNavigate();
  const request = requestOf(form);
  const create = useMutation({
    mutationFn: () => call('createSession', { app, body: request }),
    onSuccess: async session => {
      await client.invalidateQueries({ queryKey: ['sessions', app] });
      await navigate({ to: '/a/$app/sessions/$id', params: { app, id: session.id } });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <Page title="New session" above={<BackLink app={app} />}>
      <form
        onSubmit={submit}
        onInput={() => create.isError && create.reset()}
        className="grid gap-5 lg:grid-cols-[minmax(0,1.15fr)_minmax(0,1fr)] lg:items-start"
      >
        <div className="grid gap-5">
          <LifetimeFields form={form} set={setForm} />
          <Settings form={form} set={setForm} />
          <StorageAndNetwork app={app} form={form} set={setForm} />
          <Metadata form={form} set={setForm} />
        </div>
        <div className="grid gap-4 lg:sticky lg:top-7">
          <Panel>
            <Tabs
              label="The request as code"
              value={language}
              onChange={id => setLanguage(LANGUAGES.find(one => one === id) ?? 'curl')}
              tabs={LANGUAGES.map(one => ({
                id: one,
                name: one,
                panel: (
                  <div className="p-3">
                    <CodeBlock code={requestCode(one, request, location.origin)} label={`the request as ${one}`} />
                  </div>
                ),
              }))}
            />
          </Panel>
          <FormError error={create.error} />
          <div className="flex items-center justify-end gap-2">
            <Link to="/a/$app/sessions" params={{ app }} className={buttonClass('plain')}>
              Cancel
            </Link>
            <Button type="submit" look="primary" busy={create.isPending}>
              {create.isPending ? 'Starting a browser' : 'Create session'}
            </Button>
          </div>
        </div>
      </form>
    </Page>
  );
}

export const BackLink = ({ app }: { readonly app: string }) => (
  <Link
    to="/a/$app/sessions"
    params={{ app }}
    className="mb-2 -ml-1 inline-flex h-8 items-center gap-1 rounded pr-2 text-sm text-soft hover:text-ink"
  >
    <Icon name="back" size={16} />
    Sessions
  </Link>
);

interface SectionProps {
  readonly form: SessionForm;
  readonly set: (form: SessionForm) => void;
}

type FieldName<Kind> = {
  [Name in keyof SessionForm]: SessionForm[Name] extends Kind ? Name : never;
}[keyof SessionForm];
interface FieldChange {
  readonly target: { readonly value: string; readonly checked?: boolean };
}

/** Properties of a field that edits one form value. */
const textFieldProps = ({ form, set }: SectionProps, name: FieldName<string>) => ({
  value: form[name],
  onChange: ({ target }: FieldChange) => set({ ...form, [name]: target.value }),
});

const checkFieldProps = ({ form, set }: SectionProps, name: FieldName<boolean>) => ({
  checked: form[name],
  onChange: ({ target }: FieldChange) => set({ ...form, [name]: target.checked === true }),
});

const LifetimeFields = (props: SectionProps) => (
  <Panel title="Lifetime">
    <div className="grid gap-4 p-4 sm:grid-cols-2">
      <TextField
        label="Ends after, minutes"
        hint="Counted from creation, with or without clients. 1 to 360."
        type="number"
        min={1}
        max={360}
        {...textFieldProps(props, 'minutes')}
        required
      />
      <CheckField
        label="Keep alive"
        hint="Keep running without clients. Otherwise the session ends when the last client disconnects, or if none connects within 5 minutes."
        {...checkFieldProps(props, 'keepAlive')}
        className="sm:pt-1"
      />
    </div>
  </Panel>
);

function Settings(props: SectionProps) {
  const { form, set } = props;
  const size = `${form.width}x${form.height}`;
  const changeSize = (text: string): void => {
    const [width = '', height = ''] = text.split('x');
    set({ ...form, width, height });
  };
  return (
    <Panel title="Browser">
      <div className="grid gap-4 p-4 sm:grid-cols-2">
        <SelectField label="Page size" value={size} onChange={event => changeSize(event.target.value)}>
          {Object.entries(SIZES).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </SelectField>
        <TextField label="Language" placeholder="de-DE" {...textFieldProps(props, 'locale')} />
        <TextField label="Time zone" placeholder="Europe/Berlin" {...textFieldProps(props, 'timezoneId')} />
        <TextField label="User agent" placeholder="Chromium default" {...textFieldProps(props, 'userAgent')} />
        <TextField
          label="Latitude"
          type="number"
          step="any"
          min={-90}
          max={90}
          placeholder="52.52"
          {...textFieldProps(props, 'latitude')}
        />
        <TextField
          label="Longitude"
          type="number"
          step="any"
          min={-180}
          max={180}
          placeholder="13.40"
          {...textFieldProps(props, 'longitude')}
        />
        <CheckField
          label="Show PDFs in the tab"
          hint="Otherwise they are downloaded."
          {...checkFieldProps(props, 'enablePdfViewer')}
        />
        <CheckField
          label="Ignore certificate errors"
          hint="Turns off TLS certificate checks."
          {...checkFieldProps(props, 'ignoreCertificateErrors')}
        />
      </div>
    </Panel>
  );
}

function StorageAndNetwork({ app, ...props }: SectionProps & { readonly app: string }) {
  const { form } = props;
  const { data: contexts = [] } = useQuery(contextsQuery(app));
  return (
    <Panel title="Storage and network">
      <div className="grid gap-4 p-4 sm:grid-cols-2">
        <SelectField label="Context" hint="Cookies and storage to start from." {...textFieldProps(props, 'contextId')}>
          <option value="">None: start empty, save nothing</option>
          {contexts.map(({ id, name }) => (
            <option key={id} value={id}>
              {name ?? id}
            </option>
          ))}
        </SelectField>
        <CheckField
          label="Save to the context"
          hint="When the session ends, as a new version."
          disabled={form.contextId === ''}
          {...checkFieldProps(props, 'persist')}
          className="sm:pt-1"
        />
        <TextField
          label="Allowed domains"
          hint="Pages may navigate only to these domains and their subdomains. Separate with commas."
          placeholder="example.com, shop.example"
          {...textFieldProps(props, 'allowedDomains')}
          className="sm:col-span-2"
        />
        <CheckField
          label="Record"
          hint="Record every page for replay. Kept for 31 days."
          {...checkFieldProps(props, 'recordSession')}
        />
        <CheckField label="Log" hint="Log console, network and commands." {...checkFieldProps(props, 'logSession')} />
      </div>
    </Panel>
  );
}

function Metadata({ form, set }: SectionProps) {
  const change = (id: number, changes: { name?: string; value?: string }): void =>
    set({ ...form, metadata: form.metadata.map(one => (one.id === id ? { ...one, ...changes } : one)) });
  const add = (): void => {
    const id = Math.max(0, ...form.metadata.map(one => one.id)) + 1;
    set({ ...form, metadata: [...form.metadata, { id, name: '', value: '' }] });
  };
  return (
    <Panel
      title="Metadata"
      actions={
        <Button look="quiet" icon="plus" onClick={add}>
          Add
        </Button>
      }
    >
      <div className="grid gap-2 p-4">
        <p className="text-xs text-soft">Your own data. Sessions can be searched by it.</p>
        {form.metadata.map(({ id, name, value }) => (
          <div key={id} className="flex items-end gap-2">
            <TextField
              label="Name"
              className="flex-1"
              placeholder="run"
              value={name}
              onChange={event => change(id, { name: event.target.value })}
            />
            <TextField
              label="Value"
              className="flex-1"
              placeholder="r-1842"
              value={value}
              onChange={event => change(id, { value: event.target.value })}
            />
            <IconButton
              label={`Remove ${name || 'this pair'}`}
              icon="close"
              onClick={() => set({ ...form, metadata: form.metadata.filter(one => one.id !== id) })}
            />
          </div>
        ))}
      </div>
    </Panel>
  );
}
