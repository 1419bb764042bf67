// Changes an agent key: its name, the addresses it may be used from, and its grants.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { AgentKey } from '../../../contract/agent-keys.ts';
import type { Grant } from '../../../contract/grants.ts';
import { call } from '../api/call.ts';
import { Button } from '../ui/button.tsx';
import { CheckField, TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';

/** A grant as the form has it: texts. */
interface Draft {
  readonly id: string;
  readonly operationId: string;
  readonly readsOnly: boolean;
  readonly revision: string;
  readonly maxCallsPerDay: string;
  readonly maxCostPerDay: string;
  readonly input: string;
}

const draftOf = (grant?: Grant): Draft => ({
  id: crypto.randomUUID(),
  operationId: grant?.operationId ?? '',
  readsOnly: grant?.effect === 'read',
  revision: grant?.revision?.toString() ?? '',
  maxCallsPerDay: grant?.maxCallsPerDay?.toString() ?? '',
  maxCostPerDay: grant?.maxCostPerDay?.toString() ?? '',
  input: grant?.input === undefined ? '' : JSON.stringify(grant.input, undefined, 2),
});

function grantOf(draft: Draft): Grant {
  const { operationId, readsOnly, revision, maxCallsPerDay, maxCostPerDay, input } = draft;
  return {
    operationId: operationId.trim(),
    ...(readsOnly ? { effect: 'read' } : {}),
    ...(revision === '' ? {} : { revision: Number(revision) }),
    ...(maxCallsPerDay === '' ? {} : { maxCallsPerDay: Number(maxCallsPerDay) }),
    ...(maxCostPerDay === '' ? {} : { maxCostPerDay: Number(maxCostPerDay) }),
    ...(input.trim() === '' ? {} : { input: schemaOf(operationId, input) }),
  };
}

function schemaOf(operationId: string, text: string): NonNullable<Grant['input']> {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The input of ${operationId} is not JSON.`, { cause: error });
  }
}

export function ChangeKey({
  app,
  agentKey,
  done,
  close,
}: {
  readonly app: string;
  readonly agentKey: AgentKey;
  readonly done: () => Promise<void>;
  readonly close: () => void;
}) {
  const [name, setName] = useState(agentKey.name);
  const [ranges, setRanges] = useState(agentKey.cidrAllow.join(', '));
  const [grants, setGrants] = useState<readonly Draft[]>(agentKey.grants.map(draftOf));
  const work = useMutation({
    mutationFn: async () =>
      call('changeAgentKey', {
        params: { appId: app, keyId: agentKey.id },
        headers: { 'if-match': `"${agentKey.revision}"` },
        body: { name, cidrAllow: ranges.split(/[\s,]+/).filter(Boolean), grants: grants.map(grantOf) },
      }),
    onSuccess: done,
  });
  const replace = (changed: Draft): void => setGrants(grants.map(one => (one.id === changed.id ? changed : one)));
  return (
    <FormDialog title={`Change ${agentKey.name}`} action="Save" work={work} close={close}>
      <TextField label="Name" value={name} onChange={event => setName(event.target.value)} maxLength={64} required />
      <TextField
        label="Address ranges"
        hint="It may be used from these only, for example 203.0.113.0/24. Empty: from anywhere."
        value={ranges}
        onChange={event => setRanges(event.target.value)}
        spellCheck={false}
      />
      <section className="grid gap-3">
        <div className="flex items-center justify-between gap-3">
          <h3 className="text-sm font-medium">Grants</h3>
          <Button icon="plus" onClick={() => setGrants([...grants, draftOf()])}>
            Add a grant
          </Button>
        </div>
        <p className="text-sm text-soft">
          Operations that the key may call, each within bounds. Browsers need none: the permissions of the key are
          enough.
        </p>
        {grants.map((grant, index) => (
          <GrantFields
            key={grant.id}
            grant={grant}
            number={index + 1}
            change={replace}
            remove={() => setGrants(grants.filter(({ id }) => id !== grant.id))}
          />
        ))}
      </section>
    </FormDialog>
  );
}

function GrantFields({
  grant,
  number,
  change,
  remove,
}: {
  readonly grant: Draft;
  readonly number: number;
  readonly change: (grant: Draft) => void;
  readonly remove: () => void;
}) {
  const whole = (name: 'revision' | 'maxCallsPerDay' | 'maxCostPerDay', label: string, min: number) => (
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
        hint="Its id, for example browser.screenshot; * for all that only read."
        value={grant.operationId}
        onChange={event => change({ ...grant, operationId: event.target.value })}
        spellCheck={false}
        required
      />
      <CheckField
        label="Only as long as it only reads"
        checked={grant.readsOnly}
        onChange={event => change({ ...grant, readsOnly: event.target.checked })}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        {whole('revision', 'Revision', 1)}
        {whole('maxCallsPerDay', 'Calls a day', 1)}
        {whole('maxCostPerDay', 'Cost a day', 0)}
      </div>
      <div>
        <label htmlFor={`input-${grant.id}`} className="mb-1 block text-sm font-medium">
          Input must satisfy
        </label>
        <textarea
          id={`input-${grant.id}`}
          rows={3}
          spellCheck={false}
          placeholder="JSON Schema; empty: any input"
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
