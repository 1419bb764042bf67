// Retention of recordings: access to files during the retention period, and the remaining data after the period.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filesUnder } from '../harness/files-under.ts';
import { openPages } from '../harness/pages.ts';
import { fetchFilm, listRecordingFiles, listReplays, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const DAY_MS = 24 * 3_600_000;
const STORE_TIMEOUT_MS = 60_000;

const pages = await openPages();
const server = await startServer({ clock: 'test', pages });
const downloadsPath = (id: string): string => `/v1/browsers/sessions/${id}/recording/downloads`;

test('replays and files are available for 31 days, and later requests report that the recording has expired', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await eventually('the recording of the page to begin', () =>
    existsSync(join(server.dataDir, 'recordings', id, '0', 'page.json')),
  );
  for (const method of ['GET', 'POST']) {
    const refusal = await server.api(method, downloadsPath(id));
    assert.deepEqual([refusal.status, refusal.body.code], [409, 'session_not_ended']);
  }
  await server.release(id);
  await server.waitUntilEnded(id);
  const playlist = await waitForPlaylist(server, id, '0', text => text.includes('ENDLIST'));
  await fetchFilm(playlist);
  assert.equal((await requestFiles(server, id)).status, 202);
  const [file] = await eventually(
    'the file',
    () => listRecordingFiles(server, id),
    ([one]) => one?.status === 'COMPLETED',
    STORE_TIMEOUT_MS,
  );
  assert.ok(storedObjectsOf(id).length >= 3, 'init, segments and file');
  await server.advance(30 * DAY_MS);
  assert.equal((await listReplays(server, id)).length, 1);
  await server.advance(DAY_MS + 60_000);
  for (const method of ['GET', 'POST']) {
    const refusal = await server.api(method, downloadsPath(id));
    assert.deepEqual([refusal.status, refusal.body.code], [410, 'recording_expired']);
  }
  for (const tail of ['replays', 'replays/0']) {
    const { status, body } = await server.api('GET', `/v1/browsers/sessions/${id}/${tail}`);
    assert.deepEqual([status, body.message, body.details], [404, 'Replay not found', { reason: 'expired' }]);
  }
  await server.eventuallyHourly('the recording to be deleted', () => storedObjectsOf(id).length === 0);
  assert.notEqual((await fetch(file?.downloadUrl ?? '')).status, 200);
  assert.notEqual((await fetch(/#EXT-X-MAP:URI="([^"]+)"/.exec(playlist)?.[1] ?? '')).status, 200);
});

test('a request for the recording of a session that does not exist returns 404', async () => {
  const { status, body } = await server.api('POST', downloadsPath('0190a000-0000-7000-8000-000000000001'));
  assert.deepEqual([status, body.code], [404, 'not_found']);
});

/** The stored objects of the session's recording. */
const storedObjectsOf = (id: string): string[] =>
  filesUnder(join(server.dataDir, 'artifacts', 'objects')).filter(path => path.includes(join(id, 'recording')));
