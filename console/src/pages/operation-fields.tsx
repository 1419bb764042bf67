// The fields of an operation's form, in panels.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { storedCredentialsQuery } from '../api/queries.ts';
import { CheckField, SelectField, TextField } from '../ui/form.tsx';
import { JsonField } from '../ui/json-field.tsx';
import { Panel } from '../ui/page.tsx';
import type { DraftField, OperationDraft, Problem } from './operation-draft.ts';
import { APPROVAL_WORDS, EFFECT_WORDS, keyIn } from './operation-words.tsx';

const METHODS = { GET: '', HEAD: '', POST: '', PUT: '', PATCH: '', DELETE: '' } as const;
const AUTH_FORMS = { bearer: 'As bearer token', basic: 'As user name and password', header: 'In a header' } as const;

export interface FieldsProps {
  readonly app: string;
  readonly draft: OperationDraft;
  readonly change: (change: Partial<OperationDraft>) => void;
  readonly problems: readonly Problem[];
  readonly isLocked: boolean;
}

/** Returns functions that create the props of a text field, select or JSON field from its name in the draft. */
function fieldPropsOf({ draft, change, problems, isLocked }: FieldsProps) {
  const problemsOf = (field: DraftField): readonly Problem[] => problems.filter(problem => problem.field === field);
  const problem = (field: DraftField): string | undefined =>
    problemsOf(field).length > 0
      ? problemsOf(field)
          .map(({ message }) => message)
          .join('; ')
      : undefined;
  const text = (field: TextName) => ({
    ...{ value: draft[field], problem: problem(field), disabled: isLocked },
    onChange: (event: { readonly target: { readonly value: string } }) => change({ [field]: event.target.value }),
  });
  const json = (field: JsonName) => ({
    ...{ value: draft[field], problems: problemsOf(field), readOnly: isLocked },
    onChange: (value: string) => change({ [field]: value }),
  });
  return { text, json, problem };
}

type TextName =
  | 'title'
  | 'description'
  | 'url'
  | 'header'
  | 'bodyFrom'
  | 'idempotencyHeader'
  | 'seconds'
  | 'price'
  | 'credentialId';
type JsonName = 'steps' | 'inputSchema' | 'outputSchema' | 'examples' | 'call' | 'settings';

const BODY_CLASS = 'grid gap-4 p-4';

/** `children`: additional fields, shown before the other fields of the panel. */
export function AboutFields({ children, ...props }: FieldsProps & { readonly children?: ReactNode }) {
  const { draft, change, isLocked } = props;
  const { text, problem } = fieldPropsOf(props);
  return (
    <Panel title="General">
      <div className={BODY_CLASS}>
        {children}
        <TextField label="Title" hint="For people." maxLength={100} required {...text('title')} />
        <TextField
          label="Description"
          hint="For agents: what it does, and when to use it."
          maxLength={2000}
          required
          {...text('description')}
        />
        <div className="grid gap-4 @min-[560px]:grid-cols-2">
          <SelectField
            label="Effect"
            hint="A read-only call is repeated after a failure of this service. Any other call is sent at most once."
            problem={problem('effect')}
            disabled={isLocked}
            value={draft.effect}
            onChange={event => change({ effect: keyIn(EFFECT_WORDS, event.target.value, 'read') })}
          >
            <Options words={EFFECT_WORDS} />
          </SelectField>
          <SelectField
            label="Who approves each call"
            problem={problem('approval')}
            disabled={isLocked}
            value={draft.approval}
            onChange={event => change({ approval: keyIn(APPROVAL_WORDS, event.target.value, 'none') })}
          >
            <Options words={APPROVAL_WORDS} />
          </SelectField>
        </div>
        {draft.effect === 'irreversible' && draft.approval === 'none' && (
          <CheckField
            label="Let agents call the operation without approval"
            hint="The call cannot be undone, and nobody is asked first."
            problem={problem('acknowledged')}
            disabled={isLocked}
            checked={draft.acknowledged}
            onChange={event => change({ acknowledged: event.target.checked })}
          />
        )}
      </div>
    </Panel>
  );
}

export const Options = ({ words }: { readonly words: Readonly<Record<string, string>> }) =>
  Object.entries(words).map(([value, name]) => (
    <option key={value} value={value}>
      {name || value}
    </option>
  ));

export function HttpFields(props: FieldsProps) {
  const { draft, change, isLocked } = props;
  const { text, json, problem } = fieldPropsOf(props);
  return (
    <Panel title="The call">
      <div className={BODY_CLASS}>
        <div className="grid gap-4 @min-[560px]:grid-cols-[112px_minmax(0,1fr)]">
          <SelectField
            label="Method"
            problem={problem('method')}
            disabled={isLocked}
            value={draft.method}
            onChange={event => change({ method: keyIn(METHODS, event.target.value, 'GET') })}
          >
            <Options words={METHODS} />
          </SelectField>
          <TextField
            label="Address"
            hint="Names in braces are members of the input. They can be used in the path and the query."
            placeholder="https://api.shop.example/orders/{orderId}"
            spellCheck={false}
            required
            {...text('url')}
          />
        </div>
        <Authentication {...props} />
        <div className="grid gap-4 @min-[560px]:grid-cols-2">
          <TextField
            label="JSON body from"
            hint="/ for the whole input, /order for part of it. Leave empty for no body."
            spellCheck={false}
            {...text('bodyFrom')}
          />
          <TextField
            label="Idempotency header"
            hint="If the service supports idempotency keys. An interrupted call is then sent once more with the same key."
            placeholder="Idempotency-Key"
            spellCheck={false}
            {...text('idempotencyHeader')}
          />
        </div>
        <JsonField
          label="More call settings"
          hint="JSON, optional: query, headers, fixedHeaders, sign, successStatus, maxResponseBytes."
          placeholder={'{"query": {"q": "/words"}}'}
          rows={4}
          {...json('call')}
        />
      </div>
    </Panel>
  );
}

function Authentication(props: FieldsProps) {
  const { app, draft, change, isLocked } = props;
  const { text, problem } = fieldPropsOf(props);
  const { data } = useInfiniteQuery(storedCredentialsQuery(app));
  const usableCredentials = data?.pages.flatMap(page => page.data).filter(({ type }) => type !== 'login') ?? [];
  const ids = usableCredentials.map(({ id }) => id);
  const { credentialId } = draft;
  return (
    <div className="grid gap-4 @min-[560px]:grid-cols-2">
      <SelectField
        label="Credential"
        hint={
          <>
            Agents never see it.{' '}
            <Link to="/a/$app/credentials" params={{ app }} className="text-accent underline">
              Add one
            </Link>
          </>
        }
        {...text('credentialId')}
      >
        <option value="">None</option>
        {(credentialId === '' || ids.includes(credentialId) ? ids : [credentialId, ...ids]).map(id => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </SelectField>
      {credentialId !== '' && (
        <SelectField
          label="Sent"
          problem={problem('as')}
          disabled={isLocked}
          value={draft.as}
          onChange={event => change({ as: keyIn(AUTH_FORMS, event.target.value, 'bearer') })}
        >
          <Options words={AUTH_FORMS} />
        </SelectField>
      )}
      {credentialId !== '' && draft.as === 'header' && (
        <TextField label="Header for the credential" placeholder="X-Api-Key" required {...text('header')} />
      )}
    </div>
  );
}

export function BrowserFields(props: FieldsProps) {
  const { text, json } = fieldPropsOf(props);
  return (
    <Panel title="The steps">
      <div className={BODY_CLASS}>
        <TextField
          label="Address"
          hint="The page that is opened first. Names in braces are members of the input. Leave empty if the first step is a goto."
          placeholder="https://shop.example/orders/{orderId}"
          spellCheck={false}
          {...text('url')}
        />
        <JsonField
          label="Steps"
          hint='A list in JSON, such as {"do": "click", "selector": "#send"}. {"from": "/name"} takes a value from the input.'
          rows={12}
          {...json('steps')}
        />
        <JsonField
          label="More browser settings"
          hint="JSON, optional: waitUntil, acceptStatus, viewport, contextId, proxies, allowedDomains, networkPolicy, userAgent, locale, timezoneId."
          placeholder={'{"allowedDomains": ["shop.example"]}'}
          rows={4}
          {...json('call')}
        />
      </div>
    </Panel>
  );
}

export function DataFields(props: FieldsProps) {
  const { json } = fieldPropsOf(props);
  return (
    <Panel title="Input and output">
      <div className={BODY_CLASS}>
        <JsonField label="Schema of the input" hint="JSON Schema of an object." rows={10} {...json('inputSchema')} />
        <JsonField label="Examples" hint="A list of inputs, for agents. Optional." rows={5} {...json('examples')} />
        <JsonField
          label="Schema of the output"
          hint="JSON Schema, optional. Output that does not match is flagged."
          rows={5}
          {...json('outputSchema')}
        />
      </div>
    </Panel>
  );
}

export function LimitFields(props: FieldsProps) {
  const { text, json } = fieldPropsOf(props);
  return (
    <Panel title="Limits and price">
      <div className={BODY_CLASS}>
        <div className="grid gap-4 @min-[560px]:grid-cols-2">
          <TextField label="Time limit in seconds" type="number" min={1} max={120} step="any" {...text('seconds')} />
          <TextField
            label="Price of a call in credits"
            hint="Charged only for a successful call, if this installation charges credit."
            type="number"
            min={0}
            step="any"
            {...text('price')}
          />
        </div>
        <JsonField
          label="What is kept, and what the approver sees"
          hint="JSON, optional: retention, display."
          placeholder={'{"retention": {"output": "full", "days": 7}}'}
          rows={4}
          {...json('settings')}
        />
      </div>
    </Panel>
  );
}
