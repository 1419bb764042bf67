// The fields of the grants of an agent key.
import type { Grant } from '../../../contract/grants.ts';
import { randomId } from '../api/random-id.ts';
import { Button } from '../ui/button.tsx';
import { CheckField, TextField } from '../ui/form.tsx';

/** The operation whose grants also name the credentials that a call may type. */
const STEPS_OPERATION_ID = 'browser.steps';

/** A grant that is edited in the form. All values except `readsOnly` are strings. */
export interface GrantDraft {
  readonly id: string;
  readonly operationId: string;
  readonly readsOnly: boolean;
  readonly revision: string;
  readonly maxCallsPerDay: string;
  readonly maxCostPerDay: string;
  readonly input: string;
  /** Ids, separated by commas or spaces. */
  readonly credentials: string;
}

export const draftOf = (grant?: Grant): GrantDraft => ({
  id: randomId(),
  operationId: grant?.operationId ?? '',
  readsOnly: grant?.effect === 'read',
  revision: grant?.revision?.toString() ?? '',
  maxCallsPerDay: grant?.maxCallsPerDay?.toString() ?? '',
  maxCostPerDay: grant?.maxCostPerDay?.toString() ?? '',
  input: grant?.input === undefined ? '' : JSON.stringify(grant.input, undefined, 2),
  credentials: grant?.credentials?.join(', ') ?? '',
});

export function grantOf(draft: GrantDraft): Grant {
  const { operationId, readsOnly, revision, maxCallsPerDay, maxCostPerDay, input } = draft;
  const credentials = allowsCredentials(draft) ? draft.credentials.split(/[\s,]+/).filter(Boolean) : [];
  return {
    operationId: operationId.trim(),
    ...(readsOnly ? { effect: 'read' } : {}),
    ...(revision === '' ? {} : { revision: Number(revision) }),
    ...(maxCallsPerDay === '' ? {} : { maxCallsPerDay: Number(maxCallsPerDay) }),
    ...(maxCostPerDay === '' ? {} : { maxCostPerDay: Number(maxCostPerDay) }),
    ...(credentials.length > 0 ? { credentials } : {}),
    ...(input.trim() === '' ? {} : { input: parseSchema(operationId, input) }),
  };
}

function parseSchema(operationId: string, text: string): NonNullable<Grant['input']> {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The input schema for ${operationId} is not valid JSON. Correct it, or leave the field empty.`, {
      cause: error,
    });
  }
}

const allowsCredentials = ({ operationId }: GrantDraft): boolean => operationId.trim() === STEPS_OPERATION_ID;

export function GrantFields({
  grants,
  change,
}: {
  readonly grants: readonly GrantDraft[];
  readonly change: (grants: readonly GrantDraft[]) => void;
}) {
  const replace = (changedGrant: GrantDraft): void =>
    change(grants.map(one => (one.id === changedGrant.id ? changedGrant : one)));
  return (
    <section className="grid gap-3">
      <div className="flex items-center justify-between gap-3">
        <h3 className="text-sm font-medium">Grants</h3>
        <Button icon="plus" onClick={() => change([...grants, draftOf()])}>
          Add a grant
        </Button>
      </div>
      <p className="text-sm text-soft">
        Operations that the key may call, each within bounds. Using browsers needs no grant: the permissions of the key
        are enough.
      </p>
      {grants.map((grant, index) => (
        <GrantFieldset
          key={grant.id}
          grant={grant}
          number={index + 1}
          change={replace}
          remove={() => change(grants.filter(({ id }) => id !== grant.id))}
        />
      ))}
    </section>
  );
}

function GrantFieldset({
  grant,
  number,
  change,
  remove,
}: {
  readonly grant: GrantDraft;
  readonly number: number;
  readonly change: (grant: GrantDraft) => void;
  readonly remove: () => void;
}) {
  const integerField = (name: 'revision' | 'maxCallsPerDay' | 'maxCostPerDay', label: string, min: number) => (
    <TextField
      label={label}
      type="number"
      min={min}
      step={1}
      value={grant[name]}
      onChange={event => change({ ...grant, [name]: event.target.value })}
    />
  );
  return (
    <fieldset className="grid gap-3 rounded-lg border border-line p-3">
      <legend className="px-1 text-sm text-soft">Grant {number}</legend>
      <TextField
        label="Operation"
        hint="The operation id, for example browser.screenshot, or * for all read-only operations."
        value={grant.operationId}
        onChange={event => change({ ...grant, operationId: event.target.value })}
        spellCheck={false}
        required
      />
      <CheckField
        label="Only while the operation is read-only"
        checked={grant.readsOnly}
        onChange={event => change({ ...grant, readsOnly: event.target.checked })}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        {integerField('revision', 'Revision', 1)}
        {integerField('maxCallsPerDay', 'Calls a day', 1)}
        {integerField('maxCostPerDay', 'Cost a day', 0)}
      </div>
      {allowsCredentials(grant) && (
        <TextField
          label="Credentials"
          hint="Ids of stored credentials that the steps may type into pages, separated by commas. Leave empty for none."
          value={grant.credentials}
          onChange={event => change({ ...grant, credentials: event.target.value })}
          spellCheck={false}
        />
      )}
      <div>
        <label htmlFor={`input-${grant.id}`} className="mb-1 block text-sm font-medium">
          Input must satisfy
        </label>
        <textarea
          id={`input-${grant.id}`}
          rows={3}
          spellCheck={false}
          placeholder="JSON Schema; leave empty for any input"
          value={grant.input}
          onChange={event => change({ ...grant, input: event.target.value })}
          className="w-full rounded-md border border-line-strong bg-raised px-2.5 py-1.5 font-mono text-xs"
        />
      </div>
      <div className="flex justify-end">
        <Button look="quiet" aria-label={`Remove grant ${number}`} onClick={remove}>
          Remove
        </Button>
      </div>
    </fieldset>
  );
}
