// The settings for the playground's session, which the user edits as a few form fields or as the JSON of the create
// request.
import { useId, useState } from 'react';
import type { CreateSession } from '../../../contract/sessions.ts';
import { CheckField, SelectField, TextField } from '../ui/form.tsx';
import { Panel } from '../ui/page.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { INITIAL_FORM, requestOf, type SessionForm } from './session-form.ts';

const SIZES = ['1280x720', '1440x900', '820x1180', '390x844'] as const;

/** `change` is called with undefined while the JSON is invalid. */
export function PlaygroundSession({ change }: { readonly change: (request: CreateSession | undefined) => void }) {
  const [form, setForm] = useState<SessionForm>(INITIAL_FORM);
  const [text, setText] = useState(() => formatJson(requestOf(INITIAL_FORM)));
  const [tab, setTab] = useState('form');
  const changeForm = (next: SessionForm): void => {
    setForm(next);
    setText(formatJson(requestOf(next)));
    change(requestOf(next));
  };
  const changeText = (next: string): void => {
    setText(next);
    change(parseRequest(next));
  };
  return (
    <Panel>
      <Tabs
        label="The session"
        value={tab}
        onChange={next => {
          setTab(next);
          change(next === 'form' ? requestOf(form) : parseRequest(text));
        }}
        tabs={[
          { id: 'form', name: 'Session', panel: <Fields form={form} set={changeForm} /> },
          { id: 'json', name: 'As JSON', panel: <Json text={text} write={changeText} /> },
        ]}
      />
    </Panel>
  );
}

const Fields = ({ form, set }: { readonly form: SessionForm; readonly set: (form: SessionForm) => void }) => (
  <div className="grid gap-4 p-4 sm:grid-cols-2">
    <TextField
      label="Time limit, minutes"
      type="number"
      min={1}
      max={360}
      required
      value={form.minutes}
      onChange={event => set({ ...form, minutes: event.target.value })}
    />
    <SelectField
      label="Window"
      value={`${form.width}x${form.height}`}
      onChange={event => {
        const [width = '', height = ''] = event.target.value.split('x');
        set({ ...form, width, height });
      }}
    >
      {SIZES.map(size => (
        <option key={size} value={size}>
          {size.replace('x', ' × ')}
        </option>
      ))}
    </SelectField>
    <TextField
      label="Locale"
      placeholder="en-US"
      value={form.locale}
      onChange={event => set({ ...form, locale: event.target.value })}
    />
    <CheckField
      label="Record"
      className="self-end pb-1.5"
      checked={form.recordSession}
      onChange={event => set({ ...form, recordSession: event.target.checked })}
    />
  </div>
);

function Json({ text, write }: { readonly text: string; readonly write: (text: string) => void }) {
  const id = useId();
  const isValid = parseRequest(text) !== undefined;
  return (
    <div className="p-4">
      <label htmlFor={id} className="sr-only">
        Request body, as JSON
      </label>
      <textarea
        id={id}
        value={text}
        rows={8}
        spellCheck={false}
        aria-invalid={!isValid}
        aria-describedby={`${id}-hint`}
        onChange={event => write(event.target.value)}
        className="block w-full rounded-md border border-line-strong bg-raised p-3 font-mono text-xs aria-invalid:border-bad"
      />
      <p id={`${id}-hint`} className="mt-1 text-xs text-soft">
        {isValid ? 'The body of POST /v1/browsers/sessions.' : 'Expected a JSON object.'}
      </p>
    </div>
  );
}

const formatJson = (request: CreateSession): string => JSON.stringify(request, undefined, 2);

/** Returns undefined if the text is not a JSON object. The service validates the members. */
function parseRequest(text: string): CreateSession | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
