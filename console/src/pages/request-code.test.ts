import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import type { CreateSession } from '../../../contract/sessions.ts';
import { requestCode } from './request-code.ts';
import { INITIAL_FORM, requestOf } from './session-form.ts';

const REQUEST: CreateSession = {
  timeout: 900,
  keepAlive: true,
  userMetadata: { run: 'it\'s \\ "r"', 'two words': 'x' },
  browserSettings: { allowedDomains: ['a.test', 'b.test'], viewport: { width: 390, height: 844 } },
};

test('a request always contains timeout and keepAlive, and only those browser settings that differ from the defaults', () => {
  assert.deepEqual(requestOf(INITIAL_FORM), { timeout: 900, keepAlive: true });
  const { browserSettings } = requestOf({
    ...INITIAL_FORM,
    width: '390',
    height: '844',
    allowedDomains: 'a.test, b.test',
  });
  assert.deepEqual(browserSettings, REQUEST.browserSettings);
  assert.deepEqual(requestOf({ ...INITIAL_FORM, contextId: 'c', persist: true }).browserSettings, {
    context: { id: 'c', persist: true },
  });
});

test('the curl command passes the request unchanged through a shell', () => {
  const code = requestCode('curl', REQUEST, 'http://127.0.0.1:1').replace(/^curl/, `printf '%s\\n'`);
  const { stdout } = spawnSync('bash', ['-c', code], { encoding: 'utf8', env: { BERTH_KEY: 'bak_x' } });
  const body = stdout.slice(stdout.indexOf('{'), stdout.lastIndexOf('}') + 1);
  assert.deepEqual(JSON.parse(body), REQUEST);
  assert.match(stdout, /Authorization: Bearer bak_x/);
});

test('the object in the TypeScript code equals the request', () => {
  const code = requestCode('TypeScript', REQUEST, 'http://127.0.0.1:1');
  const literal = /JSON\.stringify\((\{[\s\S]*?\n {2}\})\)/.exec(code)?.[1] ?? '';
  const { stdout } = spawnSync(process.execPath, ['-p', `JSON.stringify(${literal})`], { encoding: 'utf8' });
  assert.deepEqual(JSON.parse(stdout), REQUEST);
});

test('the Python code writes `true` as True, and escapes quotes and backslashes', () => {
  const code = requestCode('Python', REQUEST, 'http://127.0.0.1:1');
  assert.match(code, /"keepAlive": True,/);
  assert.match(code, /"allowedDomains": \["a\.test", "b\.test"\],/);
  assert.match(code, /"run": "it's \\\\ \\"r\\"",/);
});
