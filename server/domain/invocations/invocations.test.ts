import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import { type ApplicationId, type HostId, type InvocationId, type KeyId, newId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { findBuiltIn } from '../configured-operations/callable.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { Invocations, type InvocationsParts } from './invocations.ts';

const NOW = new Date();
const caller: AgentCaller = {
  ...{ kind: 'agentKey', applicationId: newId<ApplicationId>(NOW), keyId: newId<KeyId>(NOW) },
  ...{ scopes: new Set(['operations:invoke']), source: { ip: '' } },
};

/**
 * Returns a function that makes the call, the rows of the started calls, and a function that returns the number of
 * inserts so far. For the first `refusedCount` inserts, an equal call of another process already exists.
 */
function setup(refusedCount: number) {
  const startedRows = new Map<InvocationId, InvocationRow>();
  let insertCount = 0;
  const insert: InvocationRows['insert'] = async row => {
    insertCount += 1;
    // `get` does not find the row of the equal call, as if it had been removed in the meantime.
    return insertCount <= refusedCount ? { existing: { ...row, id: newId<InvocationId>(NOW) } } : 'inserted';
  };
  const invocations = new Invocations({
    ...{ clock: new TestClock(), host: newId<HostId>(NOW), secret: new Secret('x'.repeat(32)) },
    rows: { insert, get: async (_: ApplicationId, id: InvocationId) => startedRows.get(id) },
    keys: { get: async () => ({ grants: [{ operationId: 'browser.content' }] }) },
    catalogue: { findById: async () => findBuiltIn('browser.content') },
    executions: {
      runHeld: (_: InvocationId, work: () => Promise<unknown>) => work(),
      start: async (_: AgentCaller, row: InvocationRow) => void startedRows.set(row.id, row),
      whenStarted: async () => {},
      isRunning: () => false,
      isLeftToNextProcess: () => false,
    },
    ...{
      validate: async () => [[], []],
      managed: { assertInput: () => {} },
      files: { outputWithLinks: () => undefined },
    },
    ...{ sealInput: async () => Buffer.alloc(1), rates: { browserSecond: 0, egressMegabyte: 0 } },
  } as unknown as InvocationsParts);
  const call = () =>
    invocations.invoke(
      ...([caller, caller.applicationId, 'browser.content', { input: { url: 'https://example.com/' } }] as const),
      { idempotencyKey: 'the same', waitSeconds: 0, signal: new AbortController().signal },
    );
  return { call, started: startedRows, inserts: () => insertCount };
}

describe('calls that wait for an equal call of another process', () => {
  test('a call makes its own attempt if the equal call that it waits for is refused', async () => {
    const { call, started: startedRows } = setup(1);
    const { invocation, isReplayed } = await call();
    assert.deepEqual([[...startedRows.keys()], isReplayed], [[invocation.id], false]);
  });

  test('a call is refused without being started after three equal calls were refused', async () => {
    const { call, started: startedRows, inserts } = setup(4);
    await assert.rejects(call, { code: 'idempotency_conflict' });
    assert.deepEqual([inserts(), startedRows.size], [3, 0]);
  });
});
