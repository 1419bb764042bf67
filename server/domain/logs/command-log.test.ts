import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, systemClock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { CommandLog } from './command-log.ts';
import { COMMAND_BURST_MAX } from './limits.ts';
import { SessionLog } from './session-log.ts';

const SECRET = 'hunter2-S3cr3t';

const application = 'app' as ApplicationId;
const session = 'session' as SessionId;

test('redacts typed text in a console message from the same turn of the event loop', async () => {
  const lines: string[] = [];
  const rows = {
    write: async (_: string, __: string, chunks: ReadonlyArray<{ readonly lines: readonly string[] }>) =>
      void lines.push(...chunks.flatMap(chunk => chunk.lines)),
  };
  const log = new SessionLog({ application, session, rows, clock: systemClock, log: silentLog });
  const commandLog = new CommandLog({ log, pageOf: () => 1, clock: systemClock });
  const message = Buffer.from(JSON.stringify({ id: 1, method: 'Input.insertText', params: { text: SECRET } }));
  const onResponse = commandLog.onCommand({ method: 'Input.insertText', targetIds: ['page'], message });
  log.add({ at: 1, kind: 'console', method: 'Runtime.consoleAPICalled', params: { text: `input ${SECRET}` } });
  onResponse?.(Buffer.from('{"id":1,"result":{}}'));
  log.add({ at: 2, kind: 'console', method: 'Runtime.consoleAPICalled', params: { text: 'over' } });
  await log.close();
  assert.ok(!lines.join('').includes(SECRET), lines.join('\n'));
  assert.match(lines.join(''), /input \[redacted\].*over/s);
  assert.match(lines.join(''), /Input\.insertText/);
});

test('redacts the text of an expression in later entries, even if the expression itself exceeded the rate limit', async () => {
  const lines: string[] = [];
  const rows = {
    write: async (_: string, __: string, chunks: ReadonlyArray<{ readonly lines: readonly string[] }>) =>
      void lines.push(...chunks.flatMap(chunk => chunk.lines)),
  };
  const clock: Clock = { ...systemClock, monotonicMs: () => 0 };
  const log = new SessionLog({ application, session, rows, clock, log: silentLog });
  const commandLog = new CommandLog({ log, pageOf: () => 1, clock });
  const send = (method: string, params: object): void => {
    const message = Buffer.from(JSON.stringify({ id: 1, method, params }));
    commandLog.onCommand({ method, targetIds: ['page'], message })?.(Buffer.from('{"id":1,"result":{}}'));
  };
  for (let n = 0; n < COMMAND_BURST_MAX; n++) send('Page.reload', {});
  send('Runtime.evaluate', { expression: `search.value = '${SECRET}'; search.form.submit()` });
  log.add({ at: 1, kind: 'page', method: 'Page.frameNavigated', params: { url: `https://a.test/?q=${SECRET}` } });
  await log.close();
  assert.doesNotMatch(lines.join(''), /Runtime\.evaluate/);
  assert.match(lines.join(''), /Page\.frameNavigated.*\?q=\[redacted\]/);
});

test('parses the oldest queued commands immediately if too many commands are queued', async () => {
  const rows = { write: async () => {} };
  const clock: Clock = { ...systemClock, monotonicMs: () => 0 };
  const log = new SessionLog({ application, session, rows, clock, log: silentLog });
  const typedTexts: unknown[] = [];
  log.typedText.rememberText = text => void typedTexts.push(text);
  const commandLog = new CommandLog({ log, pageOf: () => 1, clock });
  for (let n = 0; n < 1_000; n++) {
    const message = Buffer.from(JSON.stringify({ id: n, method: 'Input.insertText', params: { text: `text ${n}` } }));
    commandLog.onCommand({ method: 'Input.insertText', targetIds: ['page'], message });
  }
  assert.ok(typedTexts.length >= 800, `${typedTexts.length} of 1000 were parsed in the turn in which they arrived`);
  assert.deepEqual(typedTexts.slice(0, 2), ['text 0', 'text 1']);
  await log.close();
});
