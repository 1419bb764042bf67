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
import { Keeper, type KeeperParts } from './keeper.ts';
import { type LeftBehindParts, takeLeftBehindFiles } from './left-behind.ts';

const SESSION = '00000000-0000-4000-8000-000000000001' as SessionId;
const GUID = '00000000-0000-4000-8000-000000000002';

const root = await mkdtemp(join(tmpdir(), 'berth-left-behind-'));
after(() => rm(root, { recursive: true }));

test('keeps a complete download although the database failed when its row was to be written', async () => {
  const staging = await Staging.open(join(root, 'staging'));
  const salvage = await SalvagedFiles.open(join(root, 'salvage'));
  await mkdir(join(root, 'box'));
  await writeFile(join(root, 'box', GUID), 'an invoice');
  await salvage.moveIn(SESSION, join(root, 'box'), [GUID]);

  let isDown = true;
  let state = 'running';
  let staged = '';
  const row = { sessionId: SESSION, guid: GUID, filename: 'invoice.txt' };
  const ofSession = async () => [{ ...row, state } as unknown as DownloadRow];
  const rows = {
    ofSession,
    usedBytes: async () => ({ session: 0, application: 0 }),
    complete: async (_: DownloadRow, outboxRow: OutboxRow) => {
      if (isDown) throw new Error('the database is down');
      state = 'complete';
      staged = outboxRow.staged;
      return true;
    },
    leftBehind: async () => (state === 'running' ? ofSession() : []),
    fail: async () => {
      state = 'failed';
      return true;
    },
  };
  const keeper = new Keeper({
    ...{ rows, staging, clock: systemClock, sessionBytesMax: 1_000, keyOf: () => 'key' },
    limits: { effective: async () => ({ maxStoredBytes: 1_000 }) },
    outbox: { row: (_: string, file: object) => file, prompt: () => {} },
  } as unknown as KeeperParts);
  const sessions = { byId: async () => ({ id: SESSION, endedAt: new Date(0) }) };
  const parts: LeftBehindParts = { keeper, salvage, sessions: sessions as unknown as LeftBehindParts['sessions'] };
  await assert.rejects(takeLeftBehindFiles(parts), /the database is down/);
  isDown = false;
  assert.deepEqual(await takeLeftBehindFiles(parts), { taken: 1, failed: 0 });
  assert.equal(state, 'complete');
  assert.equal(await readFile(staging.pathOf(staged), 'utf8'), 'an invoice');
  assert.deepEqual(await readdir(join(root, 'salvage')), []);
});
