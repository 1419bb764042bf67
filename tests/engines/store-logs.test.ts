// Logs, page numbers and requested recording files on the embedded PostgreSQL: chunks that replace each other, parts by
// kind, state after a restart, repeated requests, and deletion.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { LogChunk } from '../../server/engines/store/rows/logs.ts';
import type { RecordingFileRow } from '../../server/engines/store/rows/recordings.ts';
import type { SessionRow } from '../../server/engines/store/rows/sessions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, newId, type SessionId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, makeTemporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const DAY_MS = 24 * 60 * 60_000;
const chunk = (first: number, lines: readonly string[], kind = 'console'): LogChunk => ({
  first,
  lines,
  kinds: { [kind]: { entries: lines.length, bytes: 10 * lines.length } },
});

describe('logs', () => {
  const scope = new Scope();
  let store: Store;

  before(async () => {
    store = scope.own(
      await openStore({ dataDir: makeTemporaryFolder(scope, 'logs'), log: silentLog, clock: clockAt(NOW) }),
    );
  });
  after(() => scope.close());

  const aSession = async (): Promise<SessionRow> => {
    const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
    await store.accounts.insert(account);
    const applicationId = newId<ApplicationId>(NOW);
    const times = { createdAt: NOW, updatedAt: NOW };
    const application = { id: applicationId, name: 'Shop', slug: applicationId, revision: 1, ...times };
    await store.applications.insert({ ...application, billingAccountId: account.id }, account.id, 50);
    const hostId = newId<HostId>(NOW);
    await store.hosts.announce({ id: hostId, region: 'local', slots: 10, startedAt: NOW });
    const id = newId<SessionId>(NOW);
    const row = { id, applicationId, hostId, region: 'local', keepAlive: false, userMetadata: {}, settings: {} };
    const outcome = await store.sessions.place({ ...row, createdAt: NOW, expiresAt: addMs(NOW, 60_000) });
    assert.ok('placed' in outcome);
    return outcome.placed;
  };
  const readFirstLines = async (
    { applicationId, id }: SessionRow,
    after = 0,
    kinds?: readonly string[],
  ): Promise<number[]> =>
    (await store.logs.read(applicationId, id, { after, limit: 10, ...(kinds ? { kinds } : {}) })).map(
      ({ first }) => first,
    );

  it('a log chunk replaces a chunk that begins at the same line', async () => {
    const { applicationId, id } = await aSession();
    await store.logs.write(applicationId, id, [chunk(1, ['a', 'ü'])], NOW);
    await store.logs.write(applicationId, id, [chunk(1, ['a', 'ü', 'c']), chunk(4, ['d'])], NOW);
    const chunks = await store.logs.read(applicationId, id, { after: 0, limit: 10 });
    assert.deepEqual(chunks, [chunk(1, ['a', 'ü', 'c']), chunk(4, ['d'])]);
  });

  it('a log can be read from a given line and filtered by kind, but only by the application that owns it', async () => {
    const session = await aSession();
    const { applicationId, id } = session;
    await store.logs.write(
      applicationId,
      id,
      [chunk(1, ['a', 'b']), chunk(3, ['c'], 'page'), chunk(4, ['d'], 'any')],
      NOW,
    );
    assert.deepEqual(await readFirstLines(session, 1), [1, 3, 4]);
    assert.deepEqual(await readFirstLines(session, 2), [3, 4]);
    assert.deepEqual(await readFirstLines(session, 0, ['page', 'any']), [3, 4]);
    const otherSession = await aSession();
    assert.deepEqual(await readFirstLines({ ...session, applicationId: otherSession.applicationId }), []);
    assert.equal(await store.logs.lastPosition(otherSession.applicationId, id), undefined);
  });

  it('the last lines of a log are returned with the number of entries and bytes of each kind', async () => {
    const { applicationId, id } = await aSession();
    assert.equal(await store.logs.lastPosition(applicationId, id), undefined);
    await store.logs.write(
      applicationId,
      id,
      [chunk(1, ['a', 'b']), chunk(3, ['c']), chunk(4, ['d', 'e'], 'page')],
      NOW,
    );
    const position = await store.logs.lastPosition(applicationId, id);
    assert.deepEqual([position?.last, position?.written, position?.lines], [5, NOW, ['d', 'e']]);
    assert.deepEqual(position?.kinds, { console: { entries: 3, bytes: 30 }, page: { entries: 2, bytes: 20 } });
  });

  it('logs of sessions that ended long ago are deleted, and logs of running sessions are kept', async () => {
    const [ended, running] = [await aSession(), await aSession()];
    for (const { applicationId, id } of [ended, running])
      await store.logs.write(applicationId, id, [chunk(1, ['a'])], NOW);
    await store.sessions.decideEnd(ended.id, { status: 'COMPLETED', reason: 'released' }, NOW);
    await store.sessions.finish(ended.id, NOW, 0);
    assert.equal(await store.logs.forget(addMs(NOW, -DAY_MS), 10), 0);
    assert.equal(await store.logs.forget(addMs(NOW, DAY_MS), 10), 1);
    assert.deepEqual([await readFirstLines(ended), await readFirstLines(running)], [[], [1]]);
  });

  it('assembly of a requested recording file is restarted only if it has failed or its host is no longer running', async () => {
    const [{ id: sessionId, hostId }, { hostId: otherHostId }] = [await aSession(), await aSession()];
    await store.recordings.insertPage(sessionId, 0, NOW);
    const ask = async (host: HostId): Promise<RecordingFileRow> => {
      const request = { sessionId, page: 0, hostId: host, assembly: randomUUID(), requestedAt: NOW };
      await store.recordings.requestFile(request);
      return (await store.recordings.files(sessionId))[0] ?? assert.fail();
    };
    const first = await ask(otherHostId);
    const second = await ask(hostId);
    assert.deepEqual([second.hostId, second.assembly === first.assembly], [hostId, false]);
    assert.deepEqual(await ask(hostId), second, 'this host is already assembling the file');
    await store.recordings.settle({ ...second, state: 'FAILED', attempts: 5, failure: 'broken' }, NOW);
    const third = await ask(hostId);
    assert.deepEqual([third.state, third.attempts, third.assembly === second.assembly], ['PENDING', 0, false]);
    await store.recordings.settle({ ...third, state: 'COMPLETED', size: 1, completedAt: NOW }, NOW);
    assert.equal((await ask(otherHostId)).assembly, third.assembly, 'a complete file is kept');
    const [{ id: kept, hostId: formerHostId }] = [await aSession()];
    await store.recordings.insertPage(kept, 0, NOW);
    const livingHostId = newId<HostId>(NOW);
    const host = { id: livingHostId, region: 'local', slots: 1, startedAt: NOW, url: 'http://a.test', version: '1' };
    const joiningHost = { ...host, labels: {}, secretMark: 'mark', clockMs: 0, incarnation: randomUUID() };
    await store.hosts.join(joiningHost, 60_000, async () => ({ storeMark: 'mark' }), true);
    const request = { sessionId: kept, page: 0, assembly: randomUUID(), requestedAt: NOW };
    await store.recordings.requestFile({ ...request, hostId: livingHostId });
    await store.recordings.requestFile({ ...request, hostId: formerHostId, assembly: randomUUID() });
    const [file] = await store.recordings.files(kept);
    assert.deepEqual(
      [file?.hostId, file?.assembly],
      [livingHostId, request.assembly],
      'the running host is already assembling the file',
    );
  });

  it('a page keeps the first number that was assigned to it', async () => {
    const { applicationId, id } = await aSession();
    const page = (number: number, targetId: string) => ({ number, targetId, appearedAt: NOW });
    await store.pages.add(applicationId, id, [page(0, 'a'), page(1, 'b')]);
    await store.pages.add(applicationId, id, [page(1, 'c'), page(2, 'b'), page(3, 'd')]);
    const pages = await store.pages.list(applicationId, id);
    assert.deepEqual(
      pages.map(({ number, targetId }) => [number, targetId]),
      [
        [0, 'a'],
        [1, 'b'],
        [3, 'd'],
      ],
    );
    assert.deepEqual(await store.pages.list((await aSession()).applicationId, id), []);
  });
});
