// Ways in which one application can put load on a server. One call of `run` causes a limited amount of load. The calls
// are repeated while the session of another application is measured.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { DownloadPage } from '../contract/files.ts';
import { systemClock } from '../server/kit/clock.ts';
import { createContext, persistentBody, waitForVersion } from '../tests/harness/contexts.ts';
import type { CreatedSession, TestServer } from '../tests/harness/server.ts';
import { eventually } from '../tests/harness/until.ts';
import { uploadRequest } from '../tests/harness/upload.ts';
import { CdpConnection } from './cdp-connection.ts';
import { openSite, type Site } from './log-site.ts';

const SITES = 3;
/**
 * Number of characters in local storage, almost the quota of a site. In JSON, each of these characters takes six bytes.
 */
const STORED_CHARS = 4_500_000;
const DOWNLOADS = 40;
/** The pause after each download. With a shorter one, Chromium drops messages. */
const DOWNLOAD_INTERVAL_MS = 250;
const DOWNLOADS_TIMEOUT_MS = 120_000;
const LARGE_VIEWPORT = { width: 3840, height: 2160, deviceScaleFactor: 1, mobile: false };
const FORM =
  'data:text/html,<input type=password value=secret><p id=n></p><script>setInterval(()=>{n.textContent=Math.random()},100)</script>';
const UNREAD_BYTES = 8_000_000;
const UNREAD_RESPONSES = 4;
const UNREAD_WAIT_MS = 500;
const RECORDING_MS = 3_000;

export interface Misbehavior {
  readonly name: string;
  /** Causes a limited amount of load. May reject, because refusals by the server are expected. */
  run(): Promise<unknown>;
}

export interface Offender {
  readonly misbehaviors: readonly Misbehavior[];
  close(): Promise<void>;
}

export async function openOffender(server: TestServer, key: string): Promise<Offender> {
  const sites = await Promise.all(Array.from({ length: SITES }, () => openSite()));
  const contextId = await createFullContext(server, key, sites);
  const session = await server.createSession({ keepAlive: true }, key);
  const connection = await CdpConnection.open(session.connectUrl);
  const page = await connection.attachToPage();
  const evaluateInPage = (expression: string): Promise<unknown> => connection.evaluate(expression, page);
  await connection.visit(`${sites[0]?.url}/idle`, page);
  await downloadRepeatedly(server, key, session, evaluateInPage);
  const recordedSession = await server.createSession(
    { keepAlive: true, browserSettings: { recordSession: true } },
    key,
  );
  const recordedConnection = await CdpConnection.open(recordedSession.connectUrl);
  const recordedPage = await recordedConnection.attachToPage();
  let localeCount = 0;
  const misbehaviors: readonly Misbehavior[] = [
    {
      name: 'console flood',
      run: () => evaluateInPage(`for (let i = 0; i < 2000; i++) console.log('line', i, 'x'.repeat(200)); 1`),
    },
    {
      name: 'huge addresses',
      run: () =>
        evaluateInPage(`history.replaceState(null, '', '/idle?u=' + 'a=b&'.repeat(5000) + Math.random());
             for (let i = 0; i < 20; i++) fetch('/x?u=/' + '?u=/'.repeat(200) + Math.random()).catch(() => 0); 1`),
    },
    { name: 'long messages', run: () => evaluateInPage(`'${'x'.repeat(4_000_000)}'.repeat(2)`) },
    {
      name: 'exports of storage',
      run: () => readAndDiscard(`${server.url}/v1/browsers/contexts/${contextId}/storage-state`, key),
    },
    {
      name: 'archives of downloads',
      run: () =>
        server.api('GET', `/v1/browsers/sessions/${session.id}/downloads`, {
          key,
          headers: { accept: 'application/zip' },
        }),
    },
    {
      name: 'files of certificates',
      run: async () => server.api('POST', '/v1/browsers/certificates', { key, ...(await createCertificateUpload()) }),
    },
    { name: 'unread sockets', run: () => leaveResponsesUnread(session.connectUrl) },
    {
      name: 'masks of 3840x2160',
      run: async () => {
        await recordedConnection.send('Emulation.setDeviceMetricsOverride', LARGE_VIEWPORT, recordedPage);
        await recordedConnection.send('Page.navigate', { url: FORM }, recordedPage);
        await systemClock.sleep(RECORDING_MS);
        await recordedConnection.send('Page.navigate', { url: 'about:blank' }, recordedPage);
      },
    },
    {
      name: 'new locales',
      run: async () => {
        const createdSession = await server.createSession(
          { browserSettings: { locale: `en-x-bench${localeCount++ % 10}` } },
          key,
        );
        await server.api('POST', `/v1/browsers/sessions/${createdSession.id}`, {
          key,
          body: { status: 'REQUEST_RELEASE' },
        });
      },
    },
  ];
  const close = async (): Promise<void> => {
    connection.close();
    recordedConnection.close();
    for (const { id } of [session, recordedSession])
      await server.api('POST', `/v1/browsers/sessions/${id}`, { key, body: { status: 'REQUEST_RELEASE' } });
    for (const site of sites) await site.close();
  };
  return { misbehaviors, close };
}

/** Creates a context in which several sites have stored almost as much data as their quota allows. */
async function createFullContext(server: TestServer, key: string, sites: readonly Site[]): Promise<string> {
  const { id } = await createContext(server, {}, key);
  const session = await server.createSession(persistentBody(id), key);
  const connection = await CdpConnection.open(session.connectUrl);
  const page = await connection.attachToPage();
  for (const { url } of sites) {
    await connection.visit(`${url}/idle`, page);
    await connection.evaluate(`localStorage.setItem('stored', '\\x01'.repeat(${STORED_CHARS}))`, page);
  }
  connection.close();
  await waitForVersion(server, id, 1, key);
  return id;
}

/** Makes a page download files that all have the same name. */
async function downloadRepeatedly(
  server: TestServer,
  key: string,
  session: CreatedSession,
  evaluateInPage: (text: string) => Promise<unknown>,
): Promise<void> {
  const path = `/v1/browsers/downloads?sessionId=${session.id}&limit=1`;
  const readDownloads = async () => (await server.api<DownloadPage>('GET', path, { key })).body;
  const clickScript = `Object.assign(document.createElement('a'), { download: 'report.txt', href: 'data:text/plain,x' }).click()`;
  for (let at = 0; at < DOWNLOADS; at++) {
    await evaluateInPage(clickScript);
    await systemClock.sleep(DOWNLOAD_INTERVAL_MS);
  }
  await eventually(
    'the downloads of the bench',
    readDownloads,
    ({ total }) => total >= DOWNLOADS,
    DOWNLOADS_TIMEOUT_MS,
  );
}

/**
 * Does not parse the response, because parsing would occupy a processor for a second. A client normally parses it on
 * another machine.
 */
async function readAndDiscard(url: string, key: string): Promise<void> {
  const request = get(url, { headers: { authorization: `Bearer ${key}` } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`GET ${url} returned ${response.statusCode}`);
}

const createCertificateUpload = () => uploadRequest('ca.pem', '-----BEGIN CERTIFICATE-----\n'.repeat(30_000));

/** Sends commands with large responses, and does not read the responses. */
async function leaveResponsesUnread(url: string): Promise<void> {
  const connection = await CdpConnection.open(url);
  const page = await connection.attachToPage();
  connection.pause();
  const params = { expression: `'x'.repeat(${UNREAD_BYTES})`, returnByValue: true };
  for (let count = 0; count < UNREAD_RESPONSES; count++)
    connection.send('Runtime.evaluate', params, page).catch(() => {});
  await systemClock.sleep(UNREAD_WAIT_MS);
  connection.close();
}
