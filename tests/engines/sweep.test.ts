// `berth sweep` without a server: removes the files of a session that are due for deletion.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { addMs } from '../../server/kit/clock.ts';
import { type HostId, newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { type Local, openLocal } from '../../server/local.ts';
import { clockAt, makeTemporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const DAY_MS = 24 * 3600_000;
const PAGE = 0;

describe('a sweep on the command line', () => {
  const scope = new Scope();
  let local: Local;

  before(async () => {
    const env = { BERTH_DATA_DIR: makeTemporaryFolder(scope, 'sweep') };
    local = scope.own(await openLocal(env, silentLog, clockAt(NOW)));
  });
  after(() => scope.close());

  /** Creates an ended session with one recorded page. */
  async function aRecordedSession(filesDueAt: Date): Promise<SessionId> {
    const { sessions, recordings, hosts } = local.store;
    const hostId = newId<HostId>(NOW);
    await hosts.announce({ id: hostId, region: 'local', slots: 1, startedAt: NOW });
    const { id: applicationId } = await local.getOrCreateApplication();
    const id = newId<SessionId>(NOW);
    const row = { id, applicationId, hostId, region: 'local', keepAlive: false, userMetadata: {}, settings: {} };
    const outcome = await sessions.place({ ...row, createdAt: NOW, expiresAt: addMs(NOW, DAY_MS) });
    assert.ok('placed' in outcome);
    await recordings.insertPage(id, PAGE, NOW);
    const run = await recordings.addRun(id, PAGE, 'a'.repeat(64));
    await recordings.addSegment({
      ...{ sessionId: id, page: PAGE, sequence: 0, run, startMs: 0, durationMs: 1000, width: 8, height: 8 },
      ...{ bytes: 9, payloadAt: 4, samples: { durationsMs: [1000], sizes: [5] } },
    });
    await recordings.requestFile({ sessionId: id, page: PAGE, hostId, assembly: randomUUID(), requestedAt: NOW });
    await sessions.decideEnd(id, { status: 'COMPLETED', reason: 'released' }, NOW);
    await sessions.finish(id, NOW, 0, { filesDueAt, forgetDueAt: addMs(NOW, DAY_MS) });
    return id;
  }

  it('a sweep deletes the recording of a session whose files are due for deletion, and no other recordings', async () => {
    const dueSession = await aRecordedSession(addMs(NOW, -1));
    const keptSession = await aRecordedSession(addMs(NOW, 1));
    assert.deepEqual(await local.sweep(), { files: 1, sessions: 0, failed: 0 });
    const { recordings } = local.store;
    assert.deepEqual(await recordings.segments(dueSession, PAGE), []);
    assert.deepEqual(await recordings.files(dueSession), []);
    assert.equal((await recordings.segments(keptSession, PAGE)).length, 1);
    assert.equal((await recordings.files(keptSession)).length, 1);
  });
});
