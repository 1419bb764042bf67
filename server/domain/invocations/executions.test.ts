import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { InvocationEnd, InvocationRow } from '../../engines/store/rows/invocations.ts';
import { type ApplicationId, type HostId, type InvocationId, type KeyId, newId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { findBuiltIn } from '../configured-operations/callable.ts';
import { fault } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { Executions, type ExecutionsParts } from './executions.ts';

const NOW = new Date();

const operation = findBuiltIn('browser.content') ?? assert.fail();
const caller: AgentCaller = {
  ...{ kind: 'agentKey', applicationId: newId<ApplicationId>(NOW), keyId: newId<KeyId>(NOW) },
  ...{ scopes: new Set(['operations:invoke']), source: { ip: '' } },
};
const row: InvocationRow = {
  ...{ id: newId<InvocationId>(NOW), hostId: newId<HostId>(NOW), applicationId: caller.applicationId },
  ...{ keyId: caller.keyId, operationId: operation.id, kind: 'managed', operationRevision: operation.revision },
  ...{ operationDigest: operation.digest, effect: 'read', state: 'accepted', requestDigest: Buffer.alloc(32) },
  ...{ inputDigest: 'sha256:', meters: {}, attempts: 0, price: 0, reserved: 0, captured: 0, createdAt: NOW },
};

/** Creates Executions with these parts, and with default parts that suffice for a call of the operation. */
const executionsWith = (parts: object): Executions =>
  new Executions({
    ...{ clock: new TestClock(), log: silentLog, rates: { browserSecond: 0, egressMegabyte: 0 } },
    ...{ issuer: 'https://berth.test', sign: async () => 'receipt', endUserOf: async () => undefined },
    ...parts,
  } as unknown as ExecutionsParts);

test('does not run a read call that is cancelled while its start is being recorded', async () => {
  const recordedEnd = Promise.withResolvers<InvocationEnd>();
  let runs = 0;
  const executions: Executions = executionsWith({
    rows: {
      dispatch: async () => {
        assert.ok(executions.cancel(row.id));
        return { ...row, state: 'dispatched' };
      },
      end: async (_: InvocationId, end: InvocationEnd) => {
        recordedEnd.resolve(end);
        return { ...row, ...end };
      },
    },
    managed: {
      prepare: async () => ({
        run: async () => {
          runs += 1;
          return { state: 'succeeded', output: {} };
        },
        release: async () => {},
      }),
    },
  });
  await executions.start(caller, row, operation, {});
  const { state, error } = await recordedEnd.promise;
  assert.deepEqual([runs, state, error?.code], [0, 'failed', 'cancelled']);
});

const key = { id: row.keyId, applicationId: row.applicationId, scopes: ['operations:invoke'], grants: [] };

test('leaves a recovered read call to the next process if the service stops while the call is waiting', async () => {
  const preparation = Promise.withResolvers<void>();
  const ends: InvocationEnd[] = [];
  const executions = executionsWith({
    rows: { listOpen: async () => [row], end: async (_: InvocationId, end: InvocationEnd) => void ends.push(end) },
    keys: { get: async () => key },
    catalogue: { findRevision: async () => operation },
    openInput: async () => ({}),
    managed: {
      releaseLeftoverSessions: async () => {},
      prepare: (...[, , , , signal]: [unknown, unknown, unknown, unknown, AbortSignal]) => {
        preparation.resolve();
        return once(signal, 'abort').then(() => signal.throwIfAborted());
      },
    },
  });
  const recoveryRejection = assert.rejects(executions.recover(), { code: 'service_stopping' });
  await preparation.promise;
  await executions.close();
  await recoveryRejection;
  assert.deepEqual(ends, []);
});

test('does not run a call again if it ends while the open rows are being read', async () => {
  const run = Promise.withResolvers<object>();
  const written = Promise.withResolvers<void>();
  let prepared = 0;
  const executions = executionsWith({
    rows: {
      dispatch: async () => ({ ...row, state: 'dispatched' }),
      end: async (_: InvocationId, end: InvocationEnd) => {
        written.resolve();
        return { ...row, ...end };
      },
      listOpen: async () => {
        run.resolve({ state: 'succeeded', output: {} });
        await written.promise;
        await setImmediate(); // The call ends.
        return [{ ...row, state: 'dispatched' }];
      },
    },
    keys: { get: async () => key },
    catalogue: { findRevision: async () => operation },
    openInput: async () => ({}),
    managed: {
      releaseLeftoverSessions: async () => {},
      prepare: async () => {
        prepared += 1;
        return { run: () => run.promise, release: async () => {} };
      },
    },
  });
  await executions.start(caller, row, operation, {});
  assert.deepEqual(await executions.recover(), { recovered: 0 });
  assert.equal(prepared, 1);
});

test('does not run a call again if it begins while the open rows are being read', async () => {
  const run = Promise.withResolvers<object>();
  let prepared = 0;
  const executions: Executions = executionsWith({
    rows: {
      dispatch: async () => ({ ...row, state: 'dispatched' }),
      end: async (_: InvocationId, end: InvocationEnd) => ({ ...row, ...end }),
      listOpen: async () => {
        await executions.start(caller, row, operation, {});
        return [row];
      },
    },
    keys: { get: async () => key },
    catalogue: { findRevision: async () => operation },
    openInput: async () => ({}),
    managed: {
      releaseLeftoverSessions: async () => {},
      prepare: async () => {
        prepared += 1;
        return { run: () => run.promise, release: async () => {} };
      },
    },
  });
  assert.deepEqual(await executions.recover(), { recovered: 0 });
  assert.equal(prepared, 1);
  run.resolve({ state: 'succeeded', output: {} });
});

/** The rows of open invocations. The ends that are written are added to `ends`. */
const openRowsWith = (ends: InvocationEnd[], ...openRows: readonly InvocationRow[]) => ({
  listOpen: async () => openRows,
  end: async (_: InvocationId, end: InvocationEnd) => {
    ends.push(end);
    return { ...row, ...end };
  },
});

test('a recovered call that may have had an effect ends as ambiguous if its recovery keeps failing', async () => {
  const ends: InvocationEnd[] = [];
  const handoffOperation = findBuiltIn('browser.handoff') ?? assert.fail();
  const dispatchedRow: InvocationRow = {
    ...row,
    operationId: handoffOperation.id,
    effect: 'write',
    state: 'dispatched',
  };
  const executions = executionsWith({
    rows: openRowsWith(ends, dispatchedRow),
    keys: { get: () => Promise.reject(new Error('the row of the key cannot be read')) },
    catalogue: { findRevision: async () => handoffOperation },
  });
  for (let run = 1; run <= 5; run++) await executions.recover();
  assert.deepEqual(
    ends.map(({ state, error }) => [state, error?.code, error?.retryable]),
    [['ambiguous', 'upstream_ambiguous', false]],
  );
});

test('a recovered call whose start fails unexpectedly does not block the calls after it, and ends after five attempts', async () => {
  const ends: InvocationEnd[] = [];
  const startedIds: unknown[] = [];
  const next: InvocationRow = { ...row, id: newId<InvocationId>(NOW) };
  const executions = executionsWith({
    rows: openRowsWith(ends, row, next),
    keys: { get: async () => key },
    catalogue: { findRevision: async () => operation },
    openInput: async () => ({}),
    managed: {
      releaseLeftoverSessions: async () => {},
      prepare: async (...[, , id]: unknown[]) => {
        startedIds.push(id);
        throw new Error('the stored operation is not valid');
      },
    },
  });
  assert.deepEqual(await executions.recover(), { recovered: 2 });
  assert.deepEqual(startedIds, [row.id, next.id]);
  assert.equal(ends.length, 0);
  for (let run = 2; run <= 5; run++) await executions.recover();
  assert.deepEqual(
    ends.map(({ state, error }) => [state, error?.code]),
    [
      ['failed', 'internal'],
      ['failed', 'internal'],
    ],
  );
});

test('ends a recovered call as failed if its input cannot be decrypted, and still runs the calls after it', async () => {
  const ends: InvocationEnd[] = [];
  const startedId = Promise.withResolvers<unknown>();
  const next: InvocationRow = { ...row, id: newId<InvocationId>(NOW) };
  const executions = executionsWith({
    rows: openRowsWith(ends, row, next),
    keys: { get: async () => key },
    catalogue: { findRevision: async () => operation },
    openInput: async ({ id }: InvocationRow) => {
      if (id === row.id) throw new Error('these bytes are not sealed');
      return {};
    },
    managed: {
      releaseLeftoverSessions: async () => {},
      prepare: async (...[, , id]: unknown[]) => {
        startedId.resolve(id);
        throw fault('capacity', 'The test has no session.');
      },
    },
  });
  await executions.recover();
  assert.equal(await startedId.promise, next.id);
  assert.deepEqual(
    ends.map(({ state, error }) => [state, error?.code, error?.phase]),
    [
      ['failed', 'internal', 'before'],
      ['failed', 'capacity', 'before'],
    ],
  );
});
