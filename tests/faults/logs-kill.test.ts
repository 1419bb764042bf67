// The log of a session continues after the server was killed, with a marker for the gap. The last entries before a
// browser was killed are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionLog } from '../../contract/logs.ts';
import { CdpClient } from '../harness/cdp.ts';
import { killBox } from '../harness/kill-box.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const COUNTING_PAGE =
  '<!doctype html><title>Counts</title><script>let n = 0; setInterval(() => console.log("tick", n++), 100)</script>';
const pages = await openPages({ '/counts': COUNTING_PAGE, '/popup': '<!doctype html><title>Popup</title>' });
/** The longest time for which entries may be lost. The log is stored every second, or later on a busy machine. */
const LOST_MS_MAX = 10_000;
const server = await startServer({ pages, env: { BERTH_ADOPT_GRACE: '60' } });

interface LogSlice {
  readonly log: readonly SessionLog[];
  readonly nextAfter: string;
}

async function read(id: string, query = ''): Promise<LogSlice> {
  const response = await server.api<SessionLog[]>('GET', `/v1/browsers/sessions/${id}/logs${query}`);
  assert.equal(response.status, 200, response.text);
  return { log: response.body, nextAfter: String(response.headers['x-next-after']) };
}

const paramsOf = (entry: SessionLog): Record<string, unknown> => Object(entry.request?.params);
const ticksOf = (log: readonly SessionLog[]): number[] =>
  log.flatMap(entry => {
    const [word, count] = [paramsOf(entry).args].flat().map(argument => Object(argument).value);
    return word === 'tick' ? [Number(count)] : [];
  });

async function openCountingPage(settings: object) {
  const session = await server.createSession(settings);
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/counts` }, page);
  await eventually(
    'the page to count',
    () => read(session.id),
    ({ log }) => ticksOf(log).length > 20,
    60_000,
  );
  return { session, client, page };
}

test('the log continues after a SIGKILL of the server, with a marker for the gap and the same page numbers', async () => {
  const { session, client, page } = await openCountingPage({ keepAlive: true });
  await client.send('Runtime.evaluate', { expression: 'window.open("/popup")', userGesture: true }, page);
  const isPopup = (entry: SessionLog): boolean => entry.pageId === 1 && entry.method === 'Page.frameNavigated';
  const sliceBefore = await eventually(
    'the popup',
    () => read(session.id),
    ({ log }) => log.some(isPopup),
    60_000,
  );
  const killedAt = Date.now();
  await server.restart();
  const isMarker = (entry: SessionLog): boolean => entry.method === 'Log.entriesDropped';
  const hasTicksAfterMarker = ({ log }: LogSlice): boolean => ticksOf(log.slice(log.findIndex(isMarker))).length > 10;
  const sliceAfter = await eventually(
    'the log to continue after the marker',
    () => read(session.id),
    hasTicksAfterMarker,
    60_000,
  );
  assert.deepEqual(sliceAfter.log.slice(0, sliceBefore.log.length), sliceBefore.log, 'earlier entries are unchanged');
  const markers = sliceAfter.log.filter(isMarker).map(paramsOf);
  assert.equal(markers.length, 1);
  assert.equal(markers[0]?.reason, 'restart');
  const from = Number(markers[0]?.from);
  assert.ok(
    from > killedAt - LOST_MS_MAX && from <= killedAt + LOST_MS_MAX,
    `the gap begins ${killedAt - from} ms earlier`,
  );
  const ticks = ticksOf(sliceAfter.log);
  assert.deepEqual(
    ticks,
    [...new Set(ticks)].sort((one, other) => one - other),
    'every entry once and in order',
  );
  assert.ok(
    sliceAfter.log.slice(sliceBefore.log.length).every(({ pageId }) => pageId !== 2),
    'the same pages have the same numbers',
  );
  const filteredSlice = await read(session.id, '?type=network');
  assert.equal(filteredSlice.log.filter(isMarker).length, 1, 'a filtered log contains the marker too');
  await server.release(session.id);
  await client.close();
});

test('when a browser is killed, the log entries of its page are kept up to shortly before the kill', async () => {
  const { session, client } = await openCountingPage({});
  await killBox(server.dataDir, session.id);
  const endedSession = await server.waitUntilEnded(session.id);
  assert.equal(endedSession.endReason, 'crashed');
  const { log } = await read(session.id);
  const entryAgeMs = Date.parse(String(endedSession.endedAt)) - Number(log.at(-1)?.timestamp);
  assert.ok(entryAgeMs < LOST_MS_MAX, `the last entry is ${entryAgeMs} ms older than the end of the browser`);
  await client.close();
});
