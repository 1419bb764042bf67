import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser, Policy, Verdict } from '../../domain/sessions/browser-host.ts';
import type { HandoffId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { devtoolsPolicy } from './devtools-policy.ts';

const browser = {
  downloadFolder: '/session/downloads',
  uploadFolder: '/tmp/.uploads',
  captureDownloads: async () => {},
  extensions: { folderOf: () => undefined, loadedIds: async () => [] },
} as unknown as Browser;

function createPolicy(held: boolean, isMasked = false): Policy {
  const lease = {
    control: {
      ...{ handoffId: 'h' as HandoffId, wasRequested: false, isMasked, allowedOrigins: undefined },
      ...{ holder: 'h', fence: 1, expiresAt: new Date() },
    },
    judgeInput: () => ({ refuse: 'driven' }),
  };
  return devtoolsPolicy({
    ...{ browser, keepAlive: true, onCloseRequest: () => assert.fail('nothing closes the browser'), page: 'PAGE' },
    lease: held ? lease : undefined,
  });
}

function createJudge(held = false): (method: string, params?: JsonObject) => Promise<Verdict> {
  const policy = createPolicy(held);
  return async (method, params = {}) => policy.judge({ method, params, isForBrowser: false });
}

const verdictKindOf = (verdict: Verdict): string => Object.keys(verdict).find(key => key !== 'onResponse') ?? '';

const CASES: Array<[string, JsonObject, string]> = [
  ['DOM.getDocument', {}, 'pass'],
  ['Runtime.evaluate', { expression: '1' }, 'pass'],
  ['Page.navigate', { url: 'https://example.com' }, 'pass'],
  ['Page.navigate', { url: 'file:///etc/passwd' }, 'refuse'],
  ['Network.loadNetworkResource', { url: 'https://a.test/app.js.map' }, 'pass'],
  ['Network.loadNetworkResource', { url: 'file:///etc/passwd' }, 'refuse'],
  ['Network.loadNetworkResource', { url: 'https://a.test/.well-known/appspecific/com.chrome.devtools.json' }, 'refuse'],
  ['DOM.setFileInputFiles', { files: ['/etc/passwd'] }, 'refuse'],
  ['Page.setDownloadBehavior', { behavior: 'allow', downloadPath: '/tmp' }, 'rewrite'],
  ['Storage.getCookies', {}, 'pass'],
  ['Storage.getCookies', { browserContextId: 'OTHER' }, 'refuse'],
  ['Target.getTargetInfo', {}, 'pass'],
  ['Target.getTargetInfo', { targetId: 'PAGE' }, 'pass'],
  ['Target.getTargetInfo', { targetId: 'OTHER' }, 'refuse'],
  ['Target.detachFromTarget', { sessionId: 'x' }, 'pass'],
  ['Target.setDiscoverTargets', { discover: true }, 'respondWith'],
  ['Target.setRemoteLocations', { locations: [] }, 'respondWith'],
  ['Runtime.runIfWaitingForDebugger', {}, 'respondWith'],
  ['Emulation.getScreenInfos', {}, 'pass'],
  ['Emulation.canEmulate', {}, 'pass'],
  ...[
    'Target.getTargets',
    'Target.attachToTarget',
    'Target.attachToBrowserTarget',
    'Target.autoAttachRelated',
    'Target.createTarget',
    'Target.closeTarget',
    'Target.activateTarget',
    'Target.createBrowserContext',
    'Target.disposeBrowserContext',
    'Target.sendMessageToTarget',
    'Target.exposeDevToolsProtocol',
    'Target.openDevTools',
    'Browser.close',
    'Browser.getVersion',
    'Browser.setDownloadBehavior',
    'Browser.setWindowBounds',
    'SystemInfo.getInfo',
    'Tracing.start',
    'Memory.simulatePressureNotification',
    'Extensions.loadUnpacked',
    'Emulation.updateScreen',
    'DomainOfTomorrow.doAnything',
    'constructor',
  ].map((method): [string, JsonObject, string] => [method, { targetId: 'PAGE', flatten: true }, 'refuse']),
];

test('passes commands about the page, and refuses commands that affect more than the page', async () => {
  const judge = createJudge();
  for (const [method, params, expected] of CASES)
    assert.equal(verdictKindOf(await judge(method, params)), expected, `${method} ${JSON.stringify(params)}`);
});

test('rewrites setAutoAttach to attach only to children of the page, without waiting for a debugger', async () => {
  const autoAttachParams = {
    autoAttach: true,
    waitForDebuggerOnStart: true,
    flatten: false,
    filter: [{ type: 'page' }],
  };
  const verdict = await createJudge()('Target.setAutoAttach', autoAttachParams);
  assert.ok('rewrite' in verdict);
  const { filter, ...rest } = verdict.rewrite;
  assert.deepEqual(rest, { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
  const filterText = JSON.stringify(filter);
  assert.ok(filterText.includes('"iframe"') && filterText.endsWith('{"exclude":true}]'));
  for (const type of ['page', 'tab', 'browser']) assert.ok(!filterText.includes(`"${type}"`), type);
});

test('does not forward a command that clears an override that DevTools did not set, and otherwise restores overrides of other clients', async () => {
  const judge = createJudge();
  const mediaParams = { media: '', features: [{ name: 'prefers-color-scheme', value: '' }] };
  const networkParams = {
    offline: false,
    latency: 0,
    downloadThroughput: -1,
    uploadThroughput: -1,
    connectionType: 'none',
  };
  for (const [method, params] of [
    ['Emulation.setEmulatedMedia', mediaParams],
    ['Emulation.setFocusEmulationEnabled', { enabled: false }],
    ['Emulation.setCPUThrottlingRate', { rate: 1 }],
    ['Emulation.clearDeviceMetricsOverride', {}],
    ['Network.overrideNetworkState', networkParams],
  ] as const)
    assert.equal(verdictKindOf(await judge(method, params)), 'respondWith', method);
  const ruleParams = { offline: false, emulateOfflineServiceWorker: false, matchedNetworkConditions: [] };
  const ruleVerdict = await judge('Network.emulateNetworkConditionsByRule', ruleParams);
  assert.deepEqual(ruleVerdict, { respondWith: { ruleIds: [] } }, 'the front end requires ruleIds');
  const size = { width: 400, height: 300, deviceScaleFactor: 1, mobile: true };
  assert.equal(verdictKindOf(await judge('Emulation.setDeviceMetricsOverride', size)), 'pass');
  assert.equal(verdictKindOf(await judge('Emulation.clearDeviceMetricsOverride')), 'restoreOthers');
  assert.equal(
    verdictKindOf(await judge('Emulation.setGeolocationOverride')),
    'pass',
    'an unavailable position is an override too',
  );
  assert.equal(verdictKindOf(await judge('Emulation.setEmulatedMedia', { media: 'print' })), 'pass');
  assert.equal(verdictKindOf(await judge('Emulation.setEmulatedMedia', mediaParams)), 'restoreOthers');
});

test('refuses input from DevTools while a viewer has control', async () => {
  const judge = createJudge(true);
  assert.deepEqual(await judge('Input.dispatchKeyEvent', { type: 'char' }), { refuse: 'driven' });
  assert.deepEqual(await judge('Page.reload'), { refuse: 'driven' });
  assert.equal(verdictKindOf(await judge('Runtime.evaluate', { expression: '1' })), 'pass');
});

test('drops the events of a page during a masked hand-off', () => {
  const event = Buffer.from(JSON.stringify({ method: 'Runtime.consoleAPICalled', params: {} }));
  assert.equal(createPolicy(true, true).filterEvent?.(event), undefined);
  assert.equal(createPolicy(true).filterEvent?.(event), event, 'nothing is masked');
});
