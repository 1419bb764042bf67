// A recording of one minute. It lasts exactly as long as the page existed, the times in the playlist are exact to the
// millisecond, and each color appears at the time at which the page painted it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import HLS from 'hls-parser';
import { CdpClient } from '../harness/cdp.ts';
import { durationOf, framesOf, isSimilarColour } from '../harness/film.ts';
import { openPages } from '../harness/pages.ts';
import { fetchFilm, listRecordingFiles, listReplays, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const COLOURS = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
] as const;
const STEP_MS = 5_000;
const MINUTE_MS = 60_000;
const TOLERANCE_MS = 1_000;
/** How late a frame may be. Allows for the interval between recorded frames and for a busy machine. */
const LATENESS_MAX_MS = 500;
const STORE_TIMEOUT_MS = 60_000;

const pages = await openPages({
  '/clock': `<!doctype html><style>html{background:#fff}</style><script>
    const colours = ${JSON.stringify(COLOURS)};
    const show = () => {
      const step = Math.floor(Date.now() / ${STEP_MS});
      document.documentElement.style.background = 'rgb(' + colours[step % 3] + ')';
      setTimeout(show, (step + 1) * ${STEP_MS} - Date.now());
    };
    show();
  </script>`,
});
const server = await startServer({ pages });

test('the recording of a page that existed for a minute has the correct duration, and shows each color at the correct time', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const createStartMs = Date.now();
  const { targetId } = await client.send('Target.createTarget', { url: `${pages.url}/clock` });
  const createdMs = Date.now();
  await setTimeout(MINUTE_MS - (Date.now() - createStartMs));
  const closeStartMs = Date.now();
  await client.send('Target.closeTarget', { targetId });
  const closedMs = Date.now();
  await server.release(id);
  await server.waitUntilEnded(id);
  const playlist = await waitForPlaylist(server, id, '1', text => text.includes('ENDLIST'));
  const parsedPlaylist = HLS.parse(playlist);
  assert.ok(!parsedPlaylist.isMasterPlaylist && parsedPlaylist.endlist);
  const page = (await listReplays(server, id)).find(({ pageId }) => pageId === '1');
  const listedMs = (page?.endTimeMs ?? 0) - (page?.startTimeMs ?? 0);
  const isExpectedLength =
    listedMs > closeStartMs - createdMs - TOLERANCE_MS && listedMs < closedMs - createStartMs + TOLERANCE_MS;
  assert.ok(isExpectedLength, `${listedMs} of ${closeStartMs - createdMs} to ${closedMs - createStartMs}`);
  const playedMs = parsedPlaylist.segments.reduce((sum, { duration }) => sum + duration * 1_000, 0);
  assert.equal(Math.round(playedMs), listedMs);
  await requestFiles(server, id);
  const files = await eventually(
    'the files',
    () => listRecordingFiles(server, id),
    list => list.every(({ status }) => status === 'COMPLETED'),
    STORE_TIMEOUT_MS,
  );
  const file = files.find(({ pageId }) => pageId === '1');
  const film = Buffer.from(await (await fetch(file?.downloadUrl ?? '')).arrayBuffer());
  assert.equal(Math.round(durationOf(film) * 1_000), listedMs);
  const startedMs = parsedPlaylist.segments[0]?.programDateTime?.getTime() ?? 0;
  for (const bytes of [film, await fetchFilm(playlist)]) assertTimes(bytes, startedMs, closeStartMs);
});

/**
 * Asserts that each color is visible in the middle of its step, soon after the start of the step and shortly before its
 * end.
 */
function assertTimes(film: Buffer, startedMs: number, endMs: number): void {
  const frames = framesOf(film);
  const firstStep = Math.ceil(startedMs / STEP_MS) + 1;
  for (let step = firstStep; (step + 1) * STEP_MS < endMs; step++)
    for (const afterMs of [LATENESS_MAX_MS, STEP_MS / 2, STEP_MS - LATENESS_MAX_MS]) {
      const at = (step * STEP_MS + afterMs - startedMs) / 1_000;
      const shownFrame = frames.findLast(frame => frame.at <= at);
      assert.ok(
        shownFrame && isSimilarColour(shownFrame.colour, COLOURS[step % 3] ?? []),
        `${at} s: ${JSON.stringify(shownFrame)}`,
      );
    }
}
