import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { CommandLog } from './command-log.ts';
import { SessionLog } from './session-log.ts';

const SECRET = 'hunter2-S3cr3t';

test('redacts typed text in a console message from the same turn of the event loop', async () => {
  const lines: string[] = [];
  const rows = {
    write: async (_: string, __: string, chunks: ReadonlyArray<{ readonly lines: readonly string[] }>) =>
      void lines.push(...chunks.flatMap(chunk => chunk.lines)),
  };
  const application = 'app' as ApplicationId;
  const session = 'session' as SessionId;
  const log = new SessionLog({ application, session, rows, clock: systemClock, log: silentLog });
  const commands = new CommandLog({ log, pageOf: () => 1, clock: systemClock });
  const message = Buffer.from(JSON.stringify({ id: 1, method: 'Input.insertText', params: { text: SECRET } }));
  const onResponse = commands.onCommand({ method: 'Input.insertText', targetIds: ['page'], message });
  log.add({ at: 1, kind: 'console', method: 'Runtime.consoleAPICalled', params: { text: `input ${SECRET}` } });
  onResponse?.(Buffer.from('{"id":1,"result":{}}'));
  log.add({ at: 2, kind: 'console', method: 'Runtime.consoleAPICalled', params: { text: 'over' } });
  await log.close();
  assert.ok(!lines.join('').includes(SECRET), lines.join('\n'));
  assert.match(lines.join(''), /input \[redacted\].*over/s);
  assert.match(lines.join(''), /Input\.insertText/);
});
