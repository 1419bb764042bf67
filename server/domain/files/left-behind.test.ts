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

const BROKEN = '00000000-0000-4000-8000-000000000001' as SessionId;
const OTHER = '00000000-0000-4000-8000-000000000003' as SessionId;
const GUID = '00000000-0000-4000-8000-000000000002';

const root = await mkdtemp(join(tmpdir(), 'berth-left-behind-'));
after(() => rm(root, { recursive: true }));

test('keeps a complete download whose row cannot be written, and stores the downloads of other sessions', async () => {
  const staging = await Staging.open(join(root, 'staging'));
  const salvage = await SalvagedFiles.open(join(root, 'salvage'));
  for (const session of [BROKEN, OTHER]) {
    await mkdir(join(root, session));
    await writeFile(join(root, session, GUID), `an invoice of ${session}`);
    await salvage.moveIn(session, join(root, session), [GUID]);
  }

  let isDown = true;
  const staged = new Map<SessionId, string>();
  const rowOf = (sessionId: SessionId) => {
    const state = staged.has(sessionId) ? 'complete' : 'running';
    return { sessionId, guid: GUID, filename: 'invoice.txt', state } as unknown as DownloadRow;
  };
  const failedIn: SessionId[] = [];
  const rows = {
    ofSession: async (session: SessionId) => [rowOf(session)],
    usedBytes: async () => ({ session: 0, application: 0 }),
    complete: async ({ sessionId }: DownloadRow, outboxRow: OutboxRow) => {
      if (isDown && sessionId === BROKEN) throw new Error('the database is down');
      staged.set(sessionId, outboxRow.staged);
      return true;
    },
    listOrphaned: async () => [BROKEN, OTHER].map(rowOf).filter(({ state }) => state === 'running'),
    fail: async (session: SessionId) => {
      failedIn.push(session);
      return true;
    },
  };
  const keeper = new DownloadKeeper({
    ...{ rows, staging, clock: systemClock, log: silentLog, sessionBytesMax: 1_000, keyOf: () => 'key' },
    limits: { effective: async () => ({ maxStoredBytes: 1_000 }) },
    outbox: { row: (_: string, file: object) => file, prompt: () => {} },
  } as unknown as DownloadKeeperParts);
  const sessions = { byId: async (id: SessionId) => ({ id, endedAt: new Date(0) }) };
  const parts: LeftBehindParts = { keeper, salvage, sessions: sessions as unknown as LeftBehindParts['sessions'] };
  assert.deepEqual(await storeLeftBehindFiles(parts), { taken: 1, failed: 0 });
  assert.deepEqual([...staged.keys()], [OTHER]);
  assert.deepEqual(await readdir(join(root, 'salvage')), [BROKEN]);
  isDown = false;
  assert.deepEqual(await storeLeftBehindFiles(parts), { taken: 1, failed: 0 });
  for (const session of [BROKEN, OTHER])
    assert.equal(
      await readFile(staging.pathOf(staged.get(session) ?? assert.fail()), 'utf8'),
      `an invoice of ${session}`,
    );
  assert.deepEqual(await readdir(join(root, 'salvage')), []);
  assert.deepEqual(failedIn, []);
});
