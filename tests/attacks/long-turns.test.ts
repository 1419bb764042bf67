// What a caller can ask for that costs the server much: nobody else waits for it. Measured by the server's own account of
// its long turns, in time of the processor, so that a busy machine does not count.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { setTimeout as timer } from 'node:timers/promises';
import type { Context, StorageState } from '../../contract/contexts.ts';
import { CdpClient } from '../harness/cdp.ts';
import { createContext, otherApplication, persistent, reachesVersion } from '../harness/contexts.ts';
import { onPage } from '../harness/logged-in.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { upload } from '../harness/upload.ts';

/** Nearly all that a site may store. Written as JSON each of these characters takes six bytes. */
const STORED_CHARS = 4_500_000;
const CERTIFICATE_FILE_BYTES = 900_000;
/** Reading so many one by one takes a third of a second. */
const MESSAGE_VALUES = 12_000_000;
/** The longest turn that is no defect: a collection of garbage takes as long. */
const TURN_CPU_MS = 200;
/** Until the server's log is here. */
const TOLD_MS = 500;

const CONTEXTS = '/v1/browsers/contexts';
/** Of one application. */
const EXPORTS_AT_ONCE = 2;

const pages = await openPages();
const server = await startServer({ pages });
const neighbour = await server.createSession({ keepAlive: true });
const client = await CdpClient.connect(neighbour.connectUrl);
const page = await client.attachToPage();

const stateOf = (context: string): string => `${CONTEXTS}/${context}/storage-state`;

/** An answer that has begun, and of which no more is read. */
async function unread(path: string): Promise<IncomingMessage> {
  const sent = get(`${server.url}${path}`, { agent: false, headers: { authorization: `Bearer ${server.key}` } });
  const [answer]: IncomingMessage[] = await once(sent, 'response');
  assert.equal(answer?.statusCode, 200);
  answer.on('error', () => {}); // destroyed by us
  return answer;
}

interface Observed<T> {
  readonly result: T;
  /** Answers to another session meanwhile. */
  readonly answers: number;
  readonly longestCpuMs: number;
}

/** Does the work while another session asks its browser one thing after the other. */
async function besideNeighbour<T>(work: () => Promise<T>): Promise<Observed<T>> {
  const before = server.log().length;
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  working.catch(() => {});
  let answers = 0;
  for (; !isOver; answers++) {
    await client.evaluate('1 + 1', page);
    await timer(5);
  }
  const result = await working;
  await timer(TOLD_MS);
  const told = server
    .log()
    .slice(before)
    .filter(line => line.includes('"loop.long_turn"'));
  const cpuMs = told.map(line => Number(/"cpuMs":(\d+)/.exec(line)?.[1]));
  return { result, answers, longestCpuMs: Math.max(0, ...cpuMs) };
}

const { id: large } = await createContext(server);

test('exporting the storage of a large context keeps nobody waiting', async () => {
  const session = await server.createSession(persistent(large));
  const sites = [pages.url, pages.a, pages.b];
  await onPage(session.connectUrl, async tab => {
    for (const site of sites) {
      await tab.goto(`${site}/`);
      await tab.evaluate(`localStorage.setItem('stored', '\\x01'.repeat(${STORED_CHARS}))`);
    }
  });
  await reachesVersion(server, large, 1);
  const { result, answers, longestCpuMs } = await besideNeighbour(() =>
    server.api<StorageState>('GET', stateOf(large)),
  );
  assert.equal(result.status, 200, result.text.slice(0, 500));
  const stored = result.body.origins.map(({ origin, localStorage }) => [origin, localStorage[0]?.value.length]);
  assert.deepEqual(stored.sort(), sites.map(site => [site, STORED_CHARS]).sort());
  assert.equal(result.headers['content-length'], String(Buffer.byteLength(result.text)));
  assert.ok(longestCpuMs < TURN_CPU_MS, `a turn of ${longestCpuMs} ms`);
  assert.ok(answers > 5, `${answers} answers meanwhile`);
});

test('callers who do not read what they export hold their own places, and nobody else waits for them', async () => {
  const opened = await Promise.all(Array.from({ length: EXPORTS_AT_ONCE }, () => unread(stateOf(large))));
  const refused = await server.api('GET', stateOf(large));
  assert.equal(refused.status, 429, refused.text.slice(0, 500));
  assert.equal(refused.body.code, 'rate_limited');
  const key = await otherApplication(server);
  const own = await server.api<Context>('POST', CONTEXTS, { key, body: {} });
  const empty = await server.api('GET', stateOf(own.body.id), { key });
  assert.deepEqual(empty.body, { cookies: [], origins: [] });
  for (const answer of opened) answer.destroy();
  await eventually(
    'the places to be free',
    () => server.api('HEAD', stateOf(large)),
    ({ status }) => status === 200,
  );
});

test('a file of nothing but beginnings of certificates keeps nobody waiting', async () => {
  const begin = '-----BEGIN CERTIFICATE-----\n';
  const body = await upload('ca.pem', begin.repeat(CERTIFICATE_FILE_BYTES / begin.length));
  const { result, longestCpuMs } = await besideNeighbour(() => server.api('POST', '/v1/browsers/certificates', body));
  assert.equal(result.status, 400);
  assert.equal(result.body.code, 'invalid_file');
  assert.ok(longestCpuMs < TURN_CPU_MS, `a turn of ${longestCpuMs} ms`);
});

test('a message of millions of values keeps nobody waiting, and what comes behind it is answered after it', async () => {
  const other = await server.createSession({}, await otherApplication(server));
  const sender = await CdpClient.connect(other.connectUrl);
  const values = '1, '.repeat(MESSAGE_VALUES);
  const long = `{"id":900001,"method":"Browser.getVersion","params":{"values":[${values}1]}}`;
  const broken = `{"id":900002,"method":"Browser.getVersion","params":{"values":[${values}1}}`;
  const watched = `{"id":900003,"method":"Page.navigate","params":{"url":"about:blank","values":[${values}1]}}`;
  const heard: unknown[] = [];
  sender.onMessage(({ id, error, result }) => heard.push([id, error?.code ?? typeof result]));
  const { longestCpuMs } = await besideNeighbour(async () => {
    for (const message of [long, broken, watched]) sender.say(message);
    sender.say('{"id":900004,"method":"Browser.getVersion"}');
    await sender.next('the last answer', ({ id }) => id === 900_004);
  });
  assert.deepEqual(
    heard.toSorted(),
    [
      [900_001, 'object'],
      [undefined, -32700],
      [900_003, -32000],
      [900_004, 'object'],
    ].toSorted(),
  );
  assert.ok(longestCpuMs < TURN_CPU_MS, `a turn of ${longestCpuMs} ms`);
  await sender.close();
});

test('how late the event loop is can be read from the metrics', async () => {
  const { text } = await server.api('GET', '/metrics', { key: null });
  assert.match(text, /^berth_event_loop_delay_seconds_count [1-9]\d*$/m);
});

const BODIES = {
  'lists longer than they may be': `{"proxies":[${'{},'.repeat(300_000)}{}]}`,
  'fields that nobody knows': `{${Array.from({ length: 80_000 }, (_, at) => `"a${at}":1,`).join('')}"proxies":1}`,
} as const;

for (const [name, body] of Object.entries(BODIES))
  test(`a body of ${name} keeps nobody waiting`, async () => {
    const { result, longestCpuMs } = await besideNeighbour(() => server.api('POST', '/v1/browsers/sessions', { body }));
    assert.equal(result.status, 400, result.text.slice(0, 500));
    assert.ok(longestCpuMs < TURN_CPU_MS, `a turn of ${longestCpuMs} ms`);
  });

test('importing thousands of entries keeps nobody waiting', async () => {
  const { id } = await createContext(server);
  const localStorage = Array.from({ length: 9_900 }, (_, at) => ({ name: `n${at}`, value: 'v' }));
  const origins = ['a', 'b', 'c'].map(site => ({ origin: `https://${site}.example`, localStorage }));
  const body = { cookies: [], origins };
  const { result, longestCpuMs } = await besideNeighbour(() =>
    server.api('POST', `/v1/browsers/contexts/${id}/storage-state`, { body }),
  );
  assert.equal(result.status, 200, result.text.slice(0, 500));
  assert.ok(longestCpuMs < TURN_CPU_MS, `a turn of ${longestCpuMs} ms`);
});
