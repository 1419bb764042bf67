// Removal of inputs that an operation keeps for some days.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Invocation } from '../../contract/invocations.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream } from '../harness/upstream.ts';

const DAY_MS = 24 * 3_600_000;
const TASK_INTERVAL_MS = 600_000;

test('an input is removed after its retention period, and its digest and the receipt are kept', async () => {
  const upstream = await openUpstream();
  const server = await startServer({ clock: 'test', env: { BERTH_SLOTS: '0', ...upstream.settings } });
  const owner = await Owner.open(server);
  const retention = { input: 'full', days: 2 };
  await owner.publish('orders.cancel', cancelOrderOperation(upstream, { effect: 'read', retention }));
  const { key } = await issueAgentKey(server, { expiresAt: undefined });
  const { body: invocation, text } = await invoke(server, key, 'orders.cancel', { orderId: 'A-1' });
  assert.equal(invocation.status, 'succeeded', text);
  const read = async () =>
    (await server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), { key })).body;
  await server.advance(DAY_MS);
  assert.deepEqual((await read()).input, { orderId: 'A-1' });
  await server.advance(2 * DAY_MS);
  // If the task that removes inputs was already running during the advance, it runs again only ten minutes later.
  const advanceAndRead = async () => {
    await server.advance(TASK_INTERVAL_MS);
    return read();
  };
  const oldInvocation = await eventually('the input to be removed', advanceAndRead, ({ input }) => input === undefined);
  assert.deepEqual(
    [oldInvocation.inputDigest, oldInvocation.receipt, oldInvocation.retention?.inputUntil],
    [invocation.inputDigest, invocation.receipt, undefined],
  );
});
