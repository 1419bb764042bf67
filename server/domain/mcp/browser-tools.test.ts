import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { BrowserTools, type BrowserToolsParts } from './browser-tools.ts';

const sessionId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const caller: AgentCaller = {
  ...{ kind: 'agentKey', applicationId: 'application' as ApplicationId, keyId: 'key' as KeyId },
  ...{ scopes: new Set(['browsers:connect']), source: { ip: '127.0.0.1' } },
};

test('a tool works in a session as a guest, and holds the session until it is done', async () => {
  const seen: string[] = [];
  const tools = new BrowserTools({
    sessions: { read: async () => ({ id: sessionId, status: 'RUNNING' }) },
    driver: {
      run: async ({ address }: { address: string }) => {
        seen.push(address);
        return { text: 'done', tabs: [] };
      },
    },
    addressOf: (_caller: AgentCaller, id: string, how: string) => `${how} of ${id}`,
    holdSession: () => {
      seen.push('held');
      return { close: () => void seen.push('let go') };
    },
    isDriveFailed: () => false,
  } as unknown as BrowserToolsParts);
  const { signal } = new AbortController();
  const { text } = await tools.call(caller, 'browser_snapshot', { sessionId }, { signal });
  assert.equal(text, 'done');
  assert.deepEqual(seen, ['held', `guest of ${sessionId}`, 'let go']);
});
