import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { SalvagedFiles } from '../../engines/artifacts/salvage.ts';
import { Staging } from '../../engines/artifacts/staging.ts';
import type { DownloadRow } from '../../engines/store/rows/downloads.ts';
import type { OutboxRow } from '../../engines/store/rows/outbox.ts';
import { systemClock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { DownloadKeeper, type DownloadKeeperParts } from './download-keeper.ts';
import { type LeftBehindParts, storeLeftBehindFiles } from './left-behind.ts';

const BROKEN_SESSION = '00000000-0000-4000-8000-000000000001' as SessionId;
const OTHER_SESSION = '00000000-0000-4000-8000-000000000003' as SessionId;
const GUID = '00000000-0000-4000-8000-000000000002';

const root = await mkdtemp(join(tmpdir(), 'berth-left-behind-'));
after(() => rm(root, { recursive: true }));

test('a download whose row cannot be written does not block the downloads of other sessions, and is stored in the next run', async () => {
  const staging = await Staging.open(root);
  const salvage = await SalvagedFiles.open(join(root, 'salvage'));
  for (const session of [BROKEN_SESSION, OTHER_SESSION]) {
    await mkdir(join(root, session));
    await writeFile(join(root, session, GUID), `an invoice of ${session}`);
    await salvage.moveIn(session, join(root, session), [GUID]);
  }

  let isDatabaseDown = true;
  const stagedNames = new Map<SessionId, string>();
  const rowOf = (sessionId: SessionId) => {
    const state = stagedNames.has(sessionId) ? 'complete' : 'running';
    return { sessionId, guid: GUID, filename: 'invoice.txt', state } as unknown as DownloadRow;
  };
  const failedSessions: SessionId[] = [];
  const rows = {
    ofSession: async (session: SessionId) => [rowOf(session)],
    usedBytes: async () => ({ session: 0, application: 0 }),
    complete: async ({ sessionId }: DownloadRow, outboxRow: OutboxRow) => {
      if (isDatabaseDown && sessionId === BROKEN_SESSION) throw new Error('the database is down');
      stagedNames.set(sessionId, outboxRow.staged);
      return true;
    },
    listOrphaned: async () => [BROKEN_SESSION, OTHER_SESSION].map(rowOf).filter(({ state }) => state === 'running'),
    fail: async (session: SessionId) => {
      failedSessions.push(session);
      return true;
    },
  };
  const keeper = new DownloadKeeper({
    ...{ rows, staging, clock: systemClock, log: silentLog, sessionBytesMax: 1_000, keyOf: () => 'key' },
    limits: { effective: async () => ({ maxStoredBytes: 1_000 }) },
    outbox: { row: (_: string, file: object) => file, trigger: () => {} },
  } as unknown as DownloadKeeperParts);
  const sessions = { byId: async (id: SessionId) => ({ id, endedAt: new Date(0) }) };
  const parts: LeftBehindParts = { keeper, salvage, sessions: sessions as unknown as LeftBehindParts['sessions'] };
  assert.deepEqual(await storeLeftBehindFiles(parts), { taken: 1, failed: 0 });
  assert.deepEqual([...stagedNames.keys()], [OTHER_SESSION]);
  assert.deepEqual(await readdir(join(root, 'salvage')), [BROKEN_SESSION]);
  isDatabaseDown = false;
  assert.deepEqual(await storeLeftBehindFiles(parts), { taken: 1, failed: 0 });
  for (const session of [BROKEN_SESSION, OTHER_SESSION])
    assert.equal(
      await readFile(staging.pathOf(stagedNames.get(session) ?? assert.fail()), 'utf8'),
      `an invoice of ${session}`,
    );
  assert.deepEqual(await readdir(join(root, 'salvage')), []);
  assert.deepEqual(failedSessions, []);
});
