import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mcpDestinationOf } from './mcp-place.ts';

const call = (name: unknown, input?: unknown) => ({ method: 'tools/call', params: { name, arguments: input } });
const ID = '01a210d6-665b-779c-8fe0-9a0910767fa1';

for (const [what, body, expected] of [
  ['a list request', { method: 'tools/list' }, 'here'],
  ['a missing message', null, 'here'],
  ['a call without parameters', { method: 'tools/call' }, 'placed'],
  ['a tool name that is not a string', call(7, 'x'), 'placed'],
  ['the first call', call('browser_open', { url: 'x' }), 'placed'],
  ['an operation', call('browser_screenshot', { url: 'x' }), 'placed'],
  ['an operation in a session', call('browser_screenshot', { sessionId: ID }), { kind: 'session', id: ID }],
  ['a tool in a session', call('browser_click', { sessionId: ID, ref: 'e1' }), { kind: 'session', id: ID }],
  ['a tool without a session', call('browser_click', { ref: 'e1' }), 'only_session'],
  ['a session id that is not a string', call('browser_click', { sessionId: {} }), 'only_session'],
  ['the list of sessions', call('browser_sessions', {}), 'here'],
  ['a hand-off', call('browser_hand_over_wait', { handoffId: ID }), 'only_session'],
  ['a wait for a call', call('berth_result', { invocationId: ID }), { kind: 'invocation', id: ID }],
  ['a wait for a decision', call('berth_result', { jobId: ID }), { kind: 'action', id: ID }],
] as const)
  test(`mcpDestinationOf returns ${typeof expected === 'string' ? `"${expected}"` : `the ${expected.kind} in the message`} for ${what}`, () =>
    assert.deepEqual(mcpDestinationOf(body), expected));
