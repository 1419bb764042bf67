import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DriveFailed } from '../../engines/driver/command.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { BrowserTools, type BrowserToolsParts } from './browser-tools.ts';

const sessionId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const caller: AgentCaller = {
  ...{ kind: 'agentKey', applicationId: 'application' as ApplicationId, keyId: 'key' as KeyId },
  ...{ scopes: new Set(['browsers:connect', 'browsers:write']), source: { ip: '127.0.0.1' } },
};

test('a tool connects to the session as a guest, and keeps the session running until the tool is done', async () => {
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

test('browser_open returns the id of the new session even if the first page cannot be opened', async () => {
  const message = 'page.goto: net::ERR_NAME_NOT_RESOLVED at https://unknown.test/';
  const tools = new BrowserTools({
    requestOf: () => ({}),
    sessions: {
      create: async () => ({
        session: { id: sessionId, expiresAt: '2026-11-20T11:00:00.000Z' },
        warnings: [{ message: 'The width is rounded.' }],
      }),
    },
    driver: { run: () => Promise.reject(new DriveFailed('command', message)) },
    addressOf: () => 'ws://here.test',
    holdSession: () => ({ close: () => {} }),
    isDriveFailed: (error: unknown) => error instanceof DriveFailed,
    live: { urls: async () => ({ debuggerUrl: 'https://live.test/' }) },
  } as unknown as BrowserToolsParts);
  const { signal } = new AbortController();
  const openResult = await tools.call(caller, 'browser_open', { url: 'https://unknown.test' }, { signal });
  assert.deepEqual(openResult, {
    text: [
      `Opened session ${sessionId}. It ends at 2026-11-20T11:00:00.000Z.`,
      'Warning: The width is rounded.',
      message,
    ].join('\n\n'),
    isError: true,
    sessionId,
    addresses: { liveViewUrl: 'https://live.test/' },
  });
});
