import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogChunk } from '../../engines/store/rows/logs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { systemClock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { entryOf } from './entry.ts';
import { LogBook } from './log-book.ts';

test('logs a refused navigation without its query while a person has control in a masked hand-off', async () => {
  const lines: string[] = [];
  const rows = {
    write: async (_: ApplicationId, __: SessionId, chunks: readonly LogChunk[]) =>
      void lines.push(...chunks.flatMap(chunk => chunk.lines)),
    lastPosition: async () => undefined,
  };
  const book = new LogBook({ rows, clock: systemClock, log: silentLog });
  const id = 'session' as SessionId;
  await book.begin({ id, applicationId: 'app', status: 'PENDING' } as unknown as SessionRow);
  const attempt = { url: 'https://sso.test/login?answer=maiden#step', reason: 'allowed_domains', targetId: 'tab' };
  book.logBlockedNavigation(id, { ...attempt, isCovered: true });
  book.logBlockedNavigation(id, { ...attempt, isCovered: false });
  await book.end(id);
  assert.deepEqual(
    lines.map(line => entryOf(line)?.params.url),
    ['https://sso.test/login', 'https://sso.test/login?answer=maiden#step'],
  );
});
