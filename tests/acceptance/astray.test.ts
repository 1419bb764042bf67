// Pages that try to open files, chrome: pages or the source of other pages in a tab, a window or a frame. Each way of
// opening is tried with a web page first, which must open.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

/** How long to wait for a page to show that it reached a forbidden target. */
const SHOW_TIMEOUT_MS = 100;
/**
 * How long to wait for a page that submits a form. If the form's address is refused, Chromium itself does not respond
 * to some evaluations in the page (3 of 258 in a Chromium without Berth on a busy machine).
 */
const ACT_TIMEOUT_MS = 5_000;
const FORBIDDEN_MARKS = /root:x:0|^passwd:|Index of|Command Line|SOURCE-ONLY|DevTools|"os_crypt"|HOME=/m;

const WAYS: Readonly<Record<string, (to: string) => string>> = {
  location: to => `<script>location = ${JSON.stringify(to)}</script>`,
  'meta refresh': to => `<meta http-equiv=refresh content="0;url=${to}">`,
  link: to => `<a id=by href="${to}">go</a><script>by.click()</script>`,
  'link to a window': to => `<a id=by target=_blank href="${to}">go</a>`,
  'window.open': to => `<button id=by onclick='window.open(${JSON.stringify(to)})'>go</button>`,
  form: to => `<form id=by action="${to}"></form><script>by.submit()</script>`,
  iframe: to => `<iframe src="${to}"></iframe>`,
  object: to => `<object type="text/html" data="${to}"></object>`,
  embed: to => `<embed type="text/html" src="${to}">`,
  fetch: to =>
    `<script>fetch(${JSON.stringify(to)}).then(got => got.text()).then(text => document.body.append(text))</script>`,
};

const CLICKED_WAYS = new Set(['link to a window', 'window.open']);

const pages = await openPages({
  '/source': '<!doctype html><title>Source</title><!-- SOURCE-ONLY -->',
  '/way': (request: IncomingMessage, response: ServerResponse) => {
    const query = new URL(request.url ?? '/', 'http://here').searchParams;
    const to = query.get('to') ?? '';
    if (query.get('how') === 'redirect') return void response.writeHead(302, { location: to }).end();
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<!doctype html><title>Way</title><body>attempt ${WAYS[query.get('how') ?? '']?.(to)}`);
  },
});

const FORBIDDEN_URLS = [
  'file:///etc/passwd',
  'file:///etc/nsswitch.conf',
  'file:///session/profile/Local%20State',
  'file:///',
  'chrome://version/',
  'about:version',
  'devtools://devtools/bundled/inspector.html',
  `view-source:${pages.a}/source`,
];

const server = await startServer({ pages });
const session = await server.createSession({ keepAlive: true });
const client = await CdpClient.connect(session.connectUrl);
const page = await client.attachToPage();

async function takeWay(how: string, to: string): Promise<void> {
  const url = `${pages.a}/way?how=${encodeURIComponent(how)}&to=${encodeURIComponent(to)}`;
  await client.ask('Page.navigate', { url }, page);
  // The pages of `CLICKED_WAYS` stay at their URL, so the script checks the URL first. Other pages navigate away by
  // themselves, so the evaluation may fail. The error is ignored.
  const isHere = CLICKED_WAYS.has(how) ? `location.href === ${JSON.stringify(new URL(url).href)}` : 'true';
  const act = `${isHere} && new Promise(resolve => (document.readyState === 'complete' ? resolve() : addEventListener('load', resolve)))
    .then(() => (globalThis.by instanceof HTMLButtonElement || globalThis.by?.target) && by.click())
    .then(() => new Promise(resolve => setTimeout(() => resolve(true), ${SHOW_TIMEOUT_MS})))`;
  const options = { expression: act, awaitPromise: true, userGesture: true, returnByValue: true };
  const performAct = async (): Promise<unknown> => {
    const evaluation = client.ask('Runtime.evaluate', options, page);
    const limitedEvaluation =
      how === 'form' ? withTimeLimit('the page to act', evaluation, ACT_TIMEOUT_MS).catch(() => undefined) : evaluation;
    return Object((await limitedEvaluation)?.result?.result).value;
  };
  if (CLICKED_WAYS.has(how)) await eventually('the page to be clicked on', performAct, done => done === true);
  else await performAct();
}

interface TargetContent {
  readonly targetId: string;
  readonly text: string;
  /** All strings in the DOM snapshot of the page and its frames. */
  readonly strings: readonly string[];
}

/** Returns the contents of all pages and frames of the session. */
async function readTargets(): Promise<TargetContent[]> {
  const contents = await Promise.all((await targetIds(['page', 'iframe'])).map(readTarget));
  return contents.flat();
}

async function targetIds(types: readonly string[]): Promise<string[]> {
  const { targetInfos } = await client.send('Target.getTargets', { filter: types.map(type => ({ type })) });
  return Object(targetInfos).map(({ targetId }: { targetId: string }) => targetId);
}

/** Returns the contents of the page or frame. The list is empty if the frame has been replaced in the meantime. */
async function readTarget(targetId: string): Promise<TargetContent[]> {
  const attachResponse = await client.ask('Target.attachToTarget', { targetId, flatten: true });
  if (attachResponse.error) return [];
  const sessionId = Object(attachResponse.result).sessionId;
  const { result } = await client.ask('DOMSnapshot.captureSnapshot', { computedStyles: [] }, String(sessionId));
  const options = { expression: 'document.documentElement.innerText', returnByValue: true };
  const evaluateResponse = await client.ask('Runtime.evaluate', options, String(sessionId));
  await client.ask('Target.detachFromTarget', { sessionId });
  const text = String(Object(evaluateResponse.result?.result).value ?? '');
  return [{ targetId, text, strings: Object(result).strings ?? [] }];
}

/** Closes all pages except the one that the test controls. A closed page is still listed as a target for a while. */
async function closeOthers(): Promise<void> {
  const { targetInfo } = await client.send('Target.getTargetInfo', {}, page);
  const ownTargetId = String(Object(targetInfo).targetId);
  for (const targetId of (await targetIds(['page'])).filter(id => id !== ownTargetId))
    await client.ask('Target.closeTarget', { targetId });
  await eventually(
    'the other pages to be gone',
    () => targetIds(['page']),
    left => left.every(id => id === ownTargetId),
  );
}

for (const how of ['redirect', ...Object.keys(WAYS)])
  test(`a page can open web pages, but no file:, chrome:, devtools: or view-source: URLs (${how})`, async () => {
    const hitsBefore = pages.hits('/next');
    await takeWay(how, '/next');
    await eventually('the next page to be asked for', () => pages.hits('/next') > hitsBefore);
    const isShown = ({ strings }: TargetContent): boolean => strings.some(text => text.includes('Next'));
    await eventually('the next page to be shown', async () => (await readTargets()).some(isShown));
    await closeOthers();
    for (const to of FORBIDDEN_URLS) {
      await takeWay(how, to);
      for (const { text, strings } of await readTargets()) {
        assert.match(text, /^$|^attempt|ERR_\w+/, to);
        for (const string of strings) assert.doesNotMatch(string, FORBIDDEN_MARKS, to);
      }
      await closeOthers();
    }
  });

test('the ended session leaves no process, file or unfinished database row behind', async () => {
  await client.close();
  await server.release(session.id);
  await server.waitUntilSettled();
});
