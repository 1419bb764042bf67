import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser, Verdict } from '../../domain/sessions/browser-host.ts';
import type { JsonObject } from '../../kit/json.ts';
import { clientPolicy } from './policy.ts';

const DOWNLOAD_FOLDER = '/session/downloads';
let contextIds: string[] = [];
const preparedContexts: string[] = [];
let closeRequestCount = 0;
const downloadCaptures: string[] = [];
let isPageLimitReached = false;
const browser = {
  contextsMax: 50,
  pagesMax: 200,
  get isPageLimitReached() {
    return isPageLimitReached;
  },
  downloadFolder: DOWNLOAD_FOLDER,
  uploadFolder: '/tmp/.uploads',
  captureDownloads: async () => void downloadCaptures.push('kept'),
  contextIds: async () => contextIds,
  prepareContext: async (id: string) => void preparedContexts.push(id),
  extensions: {
    folderOf: (path: string) => (path === '/session/extensions/own' ? path : undefined),
    loadedIds: async () => ['loaded'],
  },
} as unknown as Browser;
const policy = clientPolicy({ browser, keepAlive: false, onCloseRequest: () => closeRequestCount++ });
const judge = async (method: string, params: JsonObject = {}): Promise<Verdict> =>
  policy.judge({ method, params, isForBrowser: false });

const word = (verdict: Verdict): string => Object.keys(verdict).find(key => key !== 'onResponse') ?? '';

const CASES: Array<[string, JsonObject, string]> = [
  ['SystemInfo.getInfo', {}, 'refuse'],
  ['Browser.getBrowserCommandLine', {}, 'refuse'],
  ['Target.sendMessageToTarget', { message: '{}' }, 'refuse'],
  ['Target.exposeDevToolsProtocol', {}, 'refuse'],
  ['Tethering.bind', { port: 1 }, 'refuse'],
  ['Extensions.loadUnpacked', { path: '/etc' }, 'refuse'],
  ['Extensions.loadUnpacked', {}, 'refuse'],
  ['Extensions.loadUnpacked', { path: ['/session/extensions/own'] }, 'refuse'],
  ['Extensions.loadUnpacked', { path: '/session/extensions/own/' }, 'refuse'],
  ['Extensions.loadUnpacked', { path: '/session/extensions/own/../../downloads' }, 'refuse'],
  ['Extensions.loadUnpacked', { path: '/session/extensions/own' }, 'rewrite'],
  ['Extensions.uninstall', { id: 'loaded' }, 'pass'],
  ['Extensions.uninstall', { id: 'other' }, 'refuse'],
  ['Extensions.getStorageItems', { storageArea: 'local' }, 'refuse'],
  ['Browser.executeBrowserCommand', { commandId: 'openTabSearch' }, 'refuse'],
  ['PWA.install', { manifestId: 'x', installUrlOrBundleUrl: 'file:///tmp/x.swbn' }, 'refuse'],
  ['PWA.launchFilesInApp', { manifestId: 'x', files: ['/etc/passwd'] }, 'refuse'],
  ['Target.attachToTarget', { targetId: 'x' }, 'refuse'],
  ['Target.attachToTarget', { targetId: 'x', flatten: false }, 'refuse'],
  ['Target.attachToTarget', { targetId: 'x', flatten: true }, 'pass'],
  ['Target.detachFromTarget', { sessionId: 'x' }, 'pass'],
  ['Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false }, 'refuse'],
  ['Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true }, 'pass'],
  ['Target.setAutoAttach', { autoAttach: false, waitForDebuggerOnStart: false }, 'pass'],
  ['Page.navigate', { url: 'https://example.com/?u=file:///etc/passwd' }, 'pass'],
  ['Page.navigate', { url: 'about:blank' }, 'pass'],
  ['Page.navigate', { url: 'data:text/html,hi' }, 'pass'],
  ['Page.navigate', { url: 'chrome-extension://abc/page.html' }, 'pass'],
  ['Page.navigate', { url: 'file:///etc/passwd' }, 'refuse'],
  ['Page.navigate', { url: 'FILE:///etc/passwd' }, 'refuse'],
  ['Page.navigate', { url: 'blob:blob: FILE:///etc/passwd' }, 'refuse'],
  ['Page.navigate', { url: 'blob:https://example.com/0b3a' }, 'pass'],
  ['Page.navigate', { url: 'filesystem:https://example.com/temporary/a' }, 'pass'],
  ['Page.navigate', { url: `${'blob:'.repeat(300_000)}x` }, 'refuse'],
  ['Page.navigate', { url: `https://example.com/${'x'.repeat(2 * 1024 ** 2)}` }, 'refuse'],
  ['Page.navigate', { url: { toString: 1 } }, 'pass'],
  ['DOM.setFileInputFiles', { files: [{ toString: 1, valueOf: 1 }] }, 'refuse'],
  ['Input.setIgnoreInputEvents', { ignore: true }, 'refuse'],
  ['Input.setIgnoreInputEvents', {}, 'refuse'],
  ['Input.setIgnoreInputEvents', { ignore: false }, 'pass'],
  ['Page.navigate', { url: ' \tfi\nle:///etc/passwd' }, 'refuse'],
  ['Page.navigate', { url: 'file:///session/downloads/../profile/Default/Cookies' }, 'refuse'],
  ['Page.navigate', { url: 'file:///session/downloads/%2e%2e/profile/x' }, 'refuse'],
  ['Page.navigate', { url: 'file:///session/downloads/report.pdf' }, 'pass'],
  ['Page.navigate', { url: 'file:///tmp/.uploads/cv.pdf' }, 'pass'],
  ['Page.navigate', { url: 'chrome://version' }, 'refuse'],
  ['Page.navigate', { url: 'chrome:version' }, 'refuse'],
  ['Page.navigate', { url: 'ChRoMe://settings' }, 'refuse'],
  ['Page.navigate', { url: 'devtools://devtools/bundled/inspector.html' }, 'refuse'],
  ['Page.navigate', { url: 'view-source:https://example.com' }, 'refuse'],
  ['Page.navigate', { url: 'view-source:file:///etc/passwd' }, 'refuse'],
  ['Page.navigate', { url: 'chrome-untrusted://terminal' }, 'refuse'],
  ['Page.navigate', { url: 'blob:chrome://x/y' }, 'refuse'],
  ['Target.createTarget', { url: 'chrome://inspect' }, 'refuse'],
  ['Target.createTarget', { url: '' }, 'pass'],
  ['Target.createTarget', { url: ' JavaScript:1' }, 'rewrite'],
  ['Target.createTarget', { url: '', newWindow: true }, 'pass'],
  ['Target.createTarget', { url: '', browserContextId: 'C' }, 'pass'],
  ['Target.createTarget', { url: '', newWindow: true, width: 300, height: 200 }, 'pass'],
  ['DOM.setFileInputFiles', { files: ['/tmp/.uploads/cv.pdf', `${DOWNLOAD_FOLDER}/a`] }, 'pass'],
  ['DOM.setFileInputFiles', { files: [] }, 'pass'],
  ['DOM.setFileInputFiles', { files: ['/tmp/.uploads/../../etc/passwd'] }, 'refuse'],
  ['DOM.setFileInputFiles', { files: ['/tmp/.uploads/ok', '/etc/passwd'] }, 'refuse'],
  ['DOM.setFileInputFiles', { files: [7] }, 'refuse'],
  ['Network.loadNetworkResource', { url: 'file:///etc/passwd' }, 'refuse'],
  ['Network.loadNetworkResource', { url: 'https://example.com/app.js.map' }, 'pass'],
  ['DOM.setFileInputFiles', { files: { length: 1, 0: '/etc/passwd' } }, 'refuse'],
  ['Input.dispatchDragEvent', { type: 'drop', data: { items: [], files: ['/etc/passwd'] } }, 'refuse'],
  ['Input.dispatchDragEvent', { type: 'drop', data: { items: [], files: ['/tmp/.uploads/cv.pdf'] } }, 'pass'],
  ['Input.dispatchDragEvent', { type: 'dragEnter', data: { items: [] } }, 'pass'],
  ['Browser.setDownloadBehavior', { behavior: 'deny' }, 'pass'],
  ['Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: '/home/me' }, 'rewrite'],
  ['Target.createBrowserContext', { proxyServer: 'direct://' }, 'refuse'],
  ['Target.createBrowserContext', { proxyBypassList: '*' }, 'refuse'],
  ['Target.createBrowserContext', { disposeOnDetach: true }, 'pass'],
  ['Browser.close', {}, 'respondWith'],
];

for (const [method, params, expected] of CASES)
  test(`returns the verdict ${expected} for ${method} ${JSON.stringify(params)}`, async () => {
    assert.ok(policy.watchedMethods.has(method), 'the policy must watch this method');
    assert.equal(word(await judge(method, params)), expected);
  });

test('replaces the download path of the client with the session folder, and keeps eventsEnabled', async () => {
  const verdict = await judge('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: '/x',
    eventsEnabled: true,
    browserContextId: 'C',
  });
  assert.deepEqual(verdict, {
    rewrite: { behavior: 'allowAndName', downloadPath: DOWNLOAD_FOLDER, eventsEnabled: true, browserContextId: 'C' },
  });
});

test('configures downloads in a new browser context before the client gets the id of the context', async () => {
  const verdict = await judge('Target.createBrowserContext');
  assert.ok('pass' in verdict && verdict.onResponse);
  await verdict.onResponse({ id: 1, result: { browserContextId: 'NEW' } });
  assert.deepEqual(preparedContexts, ['NEW']);
});

test('refuses the fifty-first browser context', async () => {
  contextIds = Array.from({ length: 50 }, (_, index) => `c${index}`);
  assert.equal(word(await judge('Target.createBrowserContext')), 'refuse');
  contextIds = [];
});

test('refuses to create a page when the page limit is reached, and otherwise passes the command', async () => {
  const params = { url: 'about:blank' };
  isPageLimitReached = true;
  assert.equal(word(await judge('Target.createTarget', params)), 'refuse');
  isPageLimitReached = false;
  assert.equal(word(await judge('Target.createTarget', params)), 'pass');
});

test('responds to Browser.close without sending it to the browser, and asks the session to close', async () => {
  closeRequestCount = 0;
  assert.deepEqual(await judge('Browser.close'), { respondWith: {} });
  assert.equal(closeRequestCount, 1);
});

test('restores the download behavior before it responds to Target.detachFromTarget', async () => {
  const verdict = await judge('Target.detachFromTarget', { sessionId: 'x' });
  assert.ok('pass' in verdict);
  assert.deepEqual(await verdict.onResponse?.({ id: 1, result: {} }), { id: 1, result: {} });
  assert.deepEqual(downloadCaptures, ['kept']);
});

test('maps paths of uploaded files to the upload folder if there is no jail', async () => {
  const folder = '/data/sessions/1/uploads';
  const unjailedPolicy = clientPolicy({
    browser: { ...browser, uploadFolder: folder } as unknown as Browser,
    keepAlive: false,
    onCloseRequest: () => {},
  });
  const files = ['/tmp/.uploads/a$&b.pdf', `${DOWNLOAD_FOLDER}/x`];
  const attachVerdict = await unjailedPolicy.judge({
    method: 'DOM.setFileInputFiles',
    params: { nodeId: 3, files },
    isForBrowser: false,
  });
  assert.deepEqual(attachVerdict, { rewrite: { nodeId: 3, files: [`${folder}/a$&b.pdf`, `${DOWNLOAD_FOLDER}/x`] } });
  const data = { items: [], files };
  const dropVerdict = await unjailedPolicy.judge({
    method: 'Input.dispatchDragEvent',
    params: { type: 'drop', data },
    isForBrowser: false,
  });
  assert.deepEqual(dropVerdict, {
    rewrite: { type: 'drop', data: { items: [], files: [`${folder}/a$&b.pdf`, `${DOWNLOAD_FOLDER}/x`] } },
  });
  const foreignParams = { nodeId: 3, files: [`${folder}/../../2/uploads/a`] };
  assert.ok(
    'refuse' in
      (await unjailedPolicy.judge({ method: 'DOM.setFileInputFiles', params: foreignParams, isForBrowser: false })),
  );
});

test('during an unmasked hand-off with allowed origins, removes changes from a browser-level Fetch.continueRequest, but not from a page-level one', () => {
  const control = { handoffId: 'h', wasRequested: true, holder: 'x', fence: 1, isMasked: false, expiresAt: new Date() };
  const changedParams = { requestId: 'r', url: 'https://evil.example' };
  const judgeChange = (allowedOrigins: readonly string[] | undefined, isForBrowser: boolean) => {
    const lease = { control: { ...control, allowedOrigins }, judgeInput: () => 'pass' } as never;
    const { isWatched, judge } = clientPolicy({ browser, keepAlive: false, onCloseRequest: () => {}, lease });
    const method = 'Fetch.continueRequest';
    return [isWatched?.(method), judge({ method, params: changedParams, isForBrowser })];
  };
  assert.deepEqual(judgeChange(['https://a.example'], true), [true, { rewrite: { requestId: 'r' } }]);
  assert.deepEqual(judgeChange(['https://a.example'], false), [true, { pass: true }], 'a page asks before the guard');
  assert.deepEqual(judgeChange(undefined, true), [false, { pass: true }]);
});

test('refuses commands that read the body of a request from a masked hand-off, even after the hand-off', async () => {
  const control = {
    handoffId: 'h',
    wasRequested: true,
    holder: 'x',
    fence: 1,
    isMasked: true,
    allowedOrigins: undefined,
  };
  const lease: { control: object | undefined } = { control: { ...control, expiresAt: new Date() } };
  const policy = clientPolicy({ browser, keepAlive: false, onCloseRequest: () => {}, lease: lease as never });
  const beginRequest = (requestId: string) =>
    policy.filterEvent?.(Buffer.from(JSON.stringify({ method: 'Network.requestWillBeSent', params: { requestId } })));
  assert.ok(beginRequest('typed'));
  lease.control = undefined;
  assert.ok(beginRequest('later'));
  for (const method of ['Network.getRequestPostData', 'Network.getResponseBody', 'Fetch.getResponseBody']) {
    assert.ok(policy.isWatched?.(method), method);
    const verdictOn = (requestId: string) => policy.judge({ method, params: { requestId }, isForBrowser: false });
    assert.match(JSON.stringify(await verdictOn('typed')), /refuse.*masked hand-off/);
    assert.deepEqual(await verdictOn('later'), { pass: true });
  }
});

test('refuses all commands that read a request body after a masked hand-off with more than 10,000 requests', async () => {
  const control = { handoffId: 'h', wasRequested: true, holder: 'x', fence: 1, isMasked: true };
  const lease: { control: object | undefined } = {
    control: { ...control, allowedOrigins: undefined, expiresAt: new Date() },
  };
  const policy = clientPolicy({ browser, keepAlive: false, onCloseRequest: () => {}, lease: lease as never });
  for (let n = 0; n <= 10_000; n++)
    policy.filterEvent?.(
      Buffer.from(JSON.stringify({ method: 'Network.requestWillBeSent', params: { requestId: `r${n}` } })),
    );
  lease.control = undefined;
  for (const requestId of ['r0', 'r9999', 'r10000', 'later']) {
    const verdict = await policy.judge({
      method: 'Network.getRequestPostData',
      params: { requestId },
      isForBrowser: false,
    });
    assert.match(
      JSON.stringify(verdict),
      requestId === 'later' ? /connect again/ : /refuse.*masked hand-off/,
      requestId,
    );
  }
});

test('prevents changes to requests and responses during a masked hand-off, and hides titles, headers, request bodies and dialog texts from the agent', async () => {
  const control = {
    handoffId: 'h',
    wasRequested: true,
    holder: 'x',
    fence: 1,
    isMasked: true,
    allowedOrigins: undefined,
  };
  const lease = { control: { ...control, expiresAt: new Date() }, judgeInput: () => ({ refuse: 'waits' }) } as never;
  const maskedPolicy = clientPolicy({ browser, keepAlive: false, onCloseRequest: () => {}, lease });
  const judge = (method: string, params: JsonObject) => maskedPolicy.judge({ method, params, isForBrowser: false });
  const changedParams = {
    requestId: 'r',
    url: 'https://evil.example',
    responseCode: 307,
    responseHeaders: [],
    headers: [],
  };
  for (const method of ['Fetch.continueRequest', 'Fetch.continueResponse']) {
    assert.ok(maskedPolicy.isWatched?.(method));
    assert.deepEqual(judge(method, changedParams), { rewrite: { requestId: 'r' } });
  }
  assert.deepEqual(judge('Fetch.fulfillRequest', changedParams), { refuse: 'waits' });
  const verdict = await judge('Target.getTargets', {});
  assert.ok('onResponse' in verdict && verdict.onResponse);
  const response = await verdict.onResponse({ result: { targetInfos: [{ targetId: 't', title: 'typed' }] } });
  assert.deepEqual(response.result, { targetInfos: [{ targetId: 't', title: '' }] });
  const filteredParams = (method: string, params: object) => {
    const shown = maskedPolicy.filterEvent?.(Buffer.from(JSON.stringify({ method, params })));
    return shown && JSON.parse(shown.toString()).params;
  };
  const request = { url: 'https://a.example', headers: { authorization: 'typed' }, postData: 'typed' };
  assert.deepEqual(filteredParams('Network.requestWillBeSent', { requestId: 'r', request }), {
    requestId: 'r',
    request: { url: 'https://a.example', headers: {} },
  });
  assert.deepEqual(filteredParams('Fetch.authRequired', { requestId: 'r', request }), {
    requestId: 'r',
    request: { url: 'https://a.example', headers: {} },
  });
  const dialogParams = (text: string) => ({
    url: 'https://a.example/',
    type: 'prompt',
    message: text,
    defaultPrompt: text,
  });
  assert.equal(filteredParams('Page.javascriptDialogOpening', dialogParams('typed')), undefined);
  const withheldDialogs = maskedPolicy.takeWithheld?.().map(one => JSON.parse(one.toString()).params);
  assert.deepEqual(
    withheldDialogs,
    [{ ...dialogParams(''), hasBrowserHandler: false }],
    'told at the end, without its text',
  );
  const closedParams = { result: true, userInput: 'typed' };
  assert.deepEqual(
    filteredParams('Page.javascriptDialogClosed', closedParams),
    { result: true, userInput: '' },
    'one from before',
  );
  filteredParams('Page.javascriptDialogOpening', dialogParams('typed'));
  assert.equal(
    filteredParams('Page.javascriptDialogClosed', closedParams),
    undefined,
    'one that the client does not know',
  );
  assert.deepEqual(maskedPolicy.takeWithheld?.(), []);
  const hiddenMethods = ['Unknown.event', 'Network.responseReceivedExtraInfo', 'Network.unknown'];
  for (const method of hiddenMethods) assert.equal(filteredParams(method, { message: 'typed' }), undefined, method);
});
