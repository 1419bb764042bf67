// Recordings: HLS playlists while the session is running, and MP4 files afterwards, for every page, unless recording is
// disabled.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import HLS from 'hls-parser';
import { chromium } from 'playwright-core';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { colourOf, durationOf, framesOf, isSimilarColour, timesOf } from '../harness/film.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { playFilm } from '../harness/play-film.ts';
import { fetchFilm, listRecordingFiles, listReplays, requestFiles, waitForPlaylist } from '../harness/recordings.ts';
import { type ApiOptions, startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const COLOURS = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
] as const;
const STEP_MS = 3_000;
/**
 * How late a frame may be, compared with the page's clock, in seconds. Allows for the interval between recorded frames
 * and for a busy machine.
 */
const LATENESS_MAX_S = 2;

const pages = await openPages({
  '/steps': `<!doctype html><title>Steps</title><style>html{background:#000}</style><script>
    const colours = ${JSON.stringify(COLOURS)};
    globalThis.painted = [];
    const step = n => {
      document.documentElement.style.background = 'rgb(' + colours[n] + ')';
      painted.push(performance.now() / 1000);
      if (n + 1 < colours.length) setTimeout(() => step(n + 1), ${STEP_MS});
    };
    addEventListener('load', () => setTimeout(() => step(0), 500));
  </script>`,
  '/green': '<!doctype html><style>html{background:rgb(0,255,0)}</style>',
});
const server = await startServer({ pages });

/** Waits until the page has painted all steps. Returns the time of each, in seconds. */
const waitForPaintTimes = (client: CdpClient, page: string): Promise<readonly number[]> =>
  eventually(
    'all the steps to be painted',
    async () => (await client.evaluate('globalThis.painted ?? []', page)) as readonly number[],
    ({ length }) => length === COLOURS.length,
  );

/** Waits until the newest picture of the session has the color. */
const waitForPictureIn = (id: string, colour: readonly number[]): Promise<unknown> =>
  eventually(`a picture in ${colour}`, async () => {
    const response = await fetchAsAgent(`/v1/browsers/sessions/${id}/picture`);
    return response.status === 200 && isSimilarColour(colourOf(Buffer.from(await response.arrayBuffer())), colour);
  });

/** Waits until the recording of the page has begun. It begins when the page is painted. */
const waitForRecording = (id: string, page: number): Promise<unknown> =>
  eventually(`page ${page} to be recorded`, () => existsSync(join(server.dataDir, 'recordings', id, String(page))));

const LINK = /\/files\/([\w-]+)\.[\w-]+/g;
const linkParts = (encoded = ''): string[] => Buffer.from(encoded, 'base64url').toString().split(' ');

/**
 * Asserts that the playlist has only grown. Its addresses stay the same for half an hour. Later addresses differ in
 * their last part, which is the expiry time.
 */
function assertAppended(before: string, after: string): void {
  const [first, second] = [before, after].map(text => linkParts([...text.matchAll(LINK)][0]?.[1]).at(-1));
  const removeExpiry = (text: string): string =>
    first === second ? text : text.replaceAll(LINK, (_, encoded: string) => linkParts(encoded).slice(0, -1).join(' '));
  assert.ok(removeExpiry(after).startsWith(removeExpiry(before)), `${before}\nis not the beginning of\n${after}`);
}

test('the recording of a session can be watched while the session is running, and its final duration and frames match the page', async () => {
  const createStartMs = Date.now();
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/steps` }, page);
  const navigatedMs = Date.now();
  const earlyPlaylist = await waitForPlaylist(server, id, '0', () => true);
  assert.match(earlyPlaylist, /PLAYLIST-TYPE:EVENT/);
  assert.doesNotMatch(earlyPlaylist, /ENDLIST/);
  const refusal = await server.api('GET', `/v1/browsers/sessions/${id}/recording/downloads`);
  assert.deepEqual([refusal.status, refusal.body.code], [409, 'session_not_ended']);
  assert.match(refusal.body.message, /Release it, and send the request again once it has ended/);
  const [liveReplay] = await listReplays(server, id);
  assert.equal(liveReplay?.url, `/v1/browsers/sessions/${id}/replays/0`);
  const laterPlaylist = await waitForPlaylist(server, id, '0', text => text.length > earlyPlaylist.length);
  assertAppended(earlyPlaylist, laterPlaylist);
  const paintTimes = await waitForPaintTimes(client, page);
  await waitForPictureIn(id, COLOURS[2]);
  await client.close();
  const releaseStartMs = Date.now();
  const { endedAt } = await releaseAndWait(id);
  const playlist = await waitForPlaylist(server, id, '0', text => text.includes('ENDLIST'));
  assertAppended(laterPlaylist, playlist.replace(':VOD', ':EVENT'));
  const parsedPlaylist = HLS.parse(playlist);
  assert.ok(!parsedPlaylist.isMasterPlaylist && parsedPlaylist.endlist);
  const film = await fetchFilm(playlist);
  const seconds = parsedPlaylist.segments.reduce((sum, { duration }) => sum + duration, 0);
  // The page was opened during the create and closed during the release, at unknown times, so only the limits of its
  // duration are known.
  const [min, max] = [(releaseStartMs - navigatedMs) / 1000, (Date.parse(endedAt ?? '') - createStartMs) / 1000];
  assert.ok(seconds > min - 1 && seconds < max + 1, `${seconds} of ${min} to ${max}`);
  assertSteps(film, paintTimes);
  await assertFile(id, seconds, paintTimes);
});

async function assertFile(id: string, seconds: number, paintTimes: readonly number[]): Promise<void> {
  assert.deepEqual(
    (await listRecordingFiles(server, id)).map(({ status }) => status),
    ['NOT_REQUESTED'],
  );
  const filesResponse = await requestFiles(server, id);
  assert.deepEqual(
    [filesResponse.status, filesResponse.body],
    [202, { downloads: [{ pageId: '0', status: 'PENDING' }] }],
  );
  const [file] = await eventually(
    'the file',
    () => listRecordingFiles(server, id),
    ([one]) => one?.status === 'COMPLETED',
    60_000,
  );
  const [readyEvent] = await listEvents(server, id, 'recording.ready');
  assert.deepEqual(readyEvent?.detail, { pageId: '0', size: file?.size });
  const response = await fetch(file?.downloadUrl ?? '');
  assert.equal(response.headers.get('content-length'), String(file?.size));
  assert.match(response.headers.get('content-disposition') ?? '', new RegExp(`^attachment; filename="${id}-0.mp4"`));
  const film = Buffer.from(await response.arrayBuffer());
  assert.equal(film.toString('latin1', 36, 40), 'moov', 'the index comes first');
  assert.equal(durationOf(film).toFixed(3), seconds.toFixed(3));
  assertSteps(film, paintTimes);
  const rangeResponse = await fetch(file?.downloadUrl ?? '', { headers: { range: 'bytes=10-19' } });
  assert.equal(rangeResponse.status, 206);
  assert.ok(Buffer.from(await rangeResponse.arrayBuffer()).equals(film.subarray(10, 20)));
}

/** Asserts that each color is shown for as long as the page painted it. */
function assertSteps(film: Buffer, paintTimes: readonly number[]): void {
  const frames = framesOf(film);
  const starts = COLOURS.map(colour => frames.find(frame => isSimilarColour(frame.colour, colour))?.at);
  for (const [index, at] of starts.entries()) {
    assert.ok(at !== undefined, `${COLOURS[index]} in ${JSON.stringify(frames)}`);
    const [startBefore, paintedAt, paintedBefore] = [starts[index - 1], paintTimes[index], paintTimes[index - 1]];
    if (startBefore === undefined || paintedAt === undefined || paintedBefore === undefined) continue;
    assert.ok(
      Math.abs(at - startBefore - (paintedAt - paintedBefore)) < LATENESS_MAX_S,
      JSON.stringify({ starts, painted: paintTimes }),
    );
  }
  const times = timesOf(film);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
}

test('right after a release, a request for replays or files covers all pages or reports that the recording is not ready yet', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(connectUrl);
  const context = browser.contexts()[0] ?? assert.fail('the session has no browser context');
  const openedPages = [context.pages()[0], await context.newPage(), await context.newPage()];
  for (const [number, page] of openedPages.entries()) {
    await page?.goto(`${pages.url}/steps`);
    await page?.waitForFunction(() => 'painted' in globalThis);
    await waitForRecording(id, number);
  }
  await server.release(id);
  const filesResponse = await eventually(
    'files to be made',
    async () => {
      const response = await requestFiles(server, id);
      if (response.status !== 202)
        assert.deepEqual(
          [response.status, response.headers['x-should-retry'], response.headers['retry-after']],
          [409, 'true', '2'],
          response.text,
        );
      return response;
    },
    ({ status }) => status === 202,
  );
  const pendingDownloads = ['0', '1', '2'].map(pageId => ({ pageId, status: 'PENDING' }));
  assert.deepEqual(filesResponse.body, { downloads: pendingDownloads });
  assert.deepEqual(
    (await listReplays(server, id)).map(({ pageId }) => pageId),
    ['0', '1', '2'],
  );
  const greenSession = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(greenSession.connectUrl);
  await client.send('Page.navigate', { url: `${pages.url}/green` }, await client.attachToPage());
  await waitForPictureIn(greenSession.id, [0, 255, 0]);
  await client.close();
  await server.release(greenSession.id);
  const replaysResponse = await server.api<{ pageCount: number; status?: string }>(
    'GET',
    `/v1/browsers/sessions/${greenSession.id}/replays`,
  );
  assert.equal(replaysResponse.status, 200, replaysResponse.text);
  assert.ok(replaysResponse.body.pageCount === 1 || replaysResponse.body.status === 'pending', replaysResponse.text);
});

async function releaseAndWait(id: string): Promise<Session> {
  await server.release(id);
  return server.waitUntilEnded(id);
}

test('a player plays the growing playlist to its end and can seek', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/steps` }, page);
  await waitForPlaylist(server, id, '0', () => true);
  const pendingEnd = waitForPaintTimes(client, page).then(() => releaseAndWait(id));
  const [seen] = await Promise.all([playFilm(() => waitForPlaylist(server, id, '0', () => true)), pendingEnd]);
  await client.close().catch(() => {});
  assert.deepEqual(seen.errors, []);
  assert.ok(seen.hasEnded);
  assert.ok(isSimilarColour(seen.colourAt.green, COLOURS[1]), JSON.stringify(seen));
});

test('popups, pages of browser contexts and closed pages are each recorded for as long as they exist', async () => {
  const { id, connectUrl } = await server.createSession();
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  const popupEvent = page?.waitForEvent('popup');
  await page?.goto(`${pages.url}/`);
  await page?.evaluate("void window.open('/green')");
  const popup = await popupEvent;
  const context = await browser.newContext();
  const own = await context.newPage();
  await own.goto(`${pages.url}/green`);
  await eventually('the popup to be loaded', () => popup?.waitForLoadState().then(() => true));
  for (const number of [0, 1, 2]) await waitForRecording(id, number);
  // After this pause, the current contents of the pages have been recorded.
  await new Promise(resolve => setTimeout(resolve, 1_500));
  await popup?.close();
  await new Promise(resolve => setTimeout(resolve, 1_000));
  await browser.close();
  await server.waitUntilEnded(id);
  await eventually(
    'all pages',
    () => listReplays(server, id),
    list => list.length === 3,
    60_000,
  );
  const films = new Map<string, Buffer>();
  for (const pageId of ['0', '1', '2'])
    films.set(pageId, await fetchFilm(await waitForPlaylist(server, id, pageId, text => text.includes('ENDLIST'))));
  // The times are final only when everything is stored.
  const replays = await listReplays(server, id);
  assert.deepEqual(
    replays.map(({ pageId }) => pageId),
    ['0', '1', '2'],
  );
  const [first, second] = replays;
  assert.ok(
    first && second && second.endTimeMs < first.endTimeMs && second.startTimeMs > first.startTimeMs,
    JSON.stringify(replays.map(({ startTimeMs, endTimeMs }) => [startTimeMs, endTimeMs])),
  );
  for (const { pageId } of replays.slice(1)) {
    const frames = framesOf(films.get(pageId) ?? assert.fail(pageId));
    assert.ok(isSimilarColour(frames.at(-1)?.colour ?? [], [0, 255, 0]), JSON.stringify(frames));
  }
});

test('a session with recording disabled stores nothing and reports that recording was disabled', async () => {
  const { id } = await server.createSession({ recordSession: false, browserSettings: { recordSession: false } });
  await new Promise(resolve => setTimeout(resolve, 1_000));
  assert.ok(!existsSync(join(server.dataDir, 'recordings', id)));
  await releaseAndWait(id);
  const replaysResponse = await server.api('GET', `/v1/browsers/sessions/${id}/replays`);
  assert.deepEqual([replaysResponse.status, replaysResponse.body.message], [404, 'Replay not found']);
  assert.deepEqual(replaysResponse.body.details, { reason: 'disabled' });
  assert.equal((await server.api('GET', `/v1/browsers/sessions/${id}/picture`)).status, 204);
  for (const method of ['GET', 'POST']) {
    const { status, body } = await server.api(method, `/v1/browsers/sessions/${id}/recording/downloads`);
    assert.deepEqual([status, body.message], [422, 'Recording was disabled for this session']);
  }
});

test('replays and recording files require the browsers:files scope', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const sessionPath = `/v1/browsers/sessions/${id}`;
  const path = `${sessionPath}/recording/downloads`;
  const keysPath = `/v1/applications/${server.applicationId}/agent-keys`;
  const token = await createOwnerToken(server);
  for (const [scope, code, replayCode] of [
    ['browsers:files', 'session_not_ended', 'replay_not_found'],
    ['browsers:read', 'permission_denied', 'permission_denied'],
    ['browsers:write', 'permission_denied', 'permission_denied'],
  ]) {
    const body = { name: `only ${scope}`, scopes: [scope] };
    const keyResponse = await server.api<{ key: string }>('POST', keysPath, { key: token, body });
    for (const method of ['GET', 'POST'])
      assert.equal(
        (await server.api(method, path, { key: keyResponse.body.key })).body.code,
        code,
        `${method} ${scope}`,
      );
    for (const replayPath of [`${sessionPath}/replays`, `${sessionPath}/replays/7`])
      assert.equal((await server.api('GET', replayPath, { key: keyResponse.body.key })).body.code, replayCode, scope);
  }
  await releaseAndWait(id);
});

test('requests for recordings with a wrong credential or page, or above the rate limit, are refused', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  await client.send('Page.navigate', { url: `${pages.url}/green` }, await client.attachToPage());
  await eventually(
    'a picture to be taken',
    () => listReplays(server, id),
    list => list.length > 0,
    60_000,
  );
  await client.close();
  const path = `/v1/browsers/sessions/${id}`;
  const requestPicture = (options?: ApiOptions) => server.api('GET', `${path}/picture`, options);
  const hasJpegPicture = async (): Promise<boolean> => isJpeg(await (await fetchAsAgent(`${path}/picture`)).bytes());
  assert.ok(await hasJpegPicture());
  assert.equal((await requestPicture({ key: null })).status, 401);
  assert.equal((await requestPicture({ key: await createOtherApplicationKey(server) })).status, 404);
  assert.equal((await server.api('GET', `${path}/replays`, { key: null })).status, 401);
  assert.equal((await server.api('GET', `${path}/replays/x`)).status, 400);
  assert.equal((await server.api('GET', `${path}/replays/999`)).status, 404);
  await releaseAndWait(id);
  await eventually(
    'a part of the recording to be stored',
    () => listReplays(server, id),
    list => list.length > 0,
    60_000,
  );
  await eventually('the last picture', hasJpegPicture);
  const statuses: number[] = [];
  for (let turn = 0; turn < 7; turn++) statuses.push((await requestFiles(server, id)).status);
  assert.ok(statuses.includes(429), statuses.join());
  const unknownId = '0190a000-0000-7000-8000-000000000001';
  for (const tail of ['replays', 'replays/0', 'recording/downloads'])
    assert.equal((await server.api('GET', `/v1/browsers/sessions/${unknownId}/${tail}`)).status, 404);
});

const fetchAsAgent = (path: string): Promise<Response> =>
  fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } });

const isJpeg = (bytes: Uint8Array): boolean => bytes.length > 1_000 && bytes[0] === 0xff && bytes[1] === 0xd8;

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());

test('Chromium reports the first paint of a page, including when a script fills about:blank', async () => {
  const { id, connectUrl } = await server.createSession();
  const client = await CdpClient.connect(connectUrl);
  for (const [method, params] of [
    ['Page.navigate', { url: 'data:text/html,<h1>Painted' }],
    ['Runtime.evaluate', { expression: 'document.body.style.background = "green"' }],
  ] as const) {
    const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
    const channel = String(sessionId);
    await client.send('Page.enable', {}, channel);
    await client.send('Page.setLifecycleEventsEnabled', { enabled: true }, channel);
    const paintEvent = client.waitForEvent(
      'Page.lifecycleEvent',
      event => event.sessionId === channel && event.params?.name === 'firstPaint',
    );
    await client.send(method, params, channel);
    await paintEvent;
  }
  await client.close();
  await server.release(id);
});
