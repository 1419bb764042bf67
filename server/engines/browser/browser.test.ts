import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ScriptedBrowser } from '../../../tests/harness/scripted-browser.ts';
import { silentLog } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { Browser } from './browser.ts';

const TEST_TIMEOUT_MS = 60_000;

async function connect(context: TestContext): Promise<{ browser: Browser; scriptedBrowser: ScriptedBrowser }> {
  const scriptedBrowser = new ScriptedBrowser();
  context.after(() => scriptedBrowser.close());
  const browser = await Browser.connect(
    scriptedBrowser.pipes,
    silentLog,
    TEST_TIMEOUT_MS,
    new AbortController().signal,
  );
  context.after(() => browser.close());
  return { browser, scriptedBrowser };
}

function failingScript(method: string): ScriptedBrowser['script'] {
  return command => {
    if (command.method === method) throw new Error('no response');
    return undefined;
  };
}

test('opens an observation on a new channel after an earlier observation could not be opened', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { browser, scriptedBrowser } = await connect(context);
  scriptedBrowser.script = failingScript('Target.setAutoAttach');
  const observe = (): Promise<Closeable> => browser.observe({ target: () => {} });
  await Promise.all([assert.rejects(observe(), /no response/), assert.rejects(observe(), /no response/)]);
  const [failed] = scriptedBrowser.channelsWith('Target.setAutoAttach');
  assert.deepEqual(scriptedBrowser.detachedChannels, [failed], 'the channel holds no new page');
  scriptedBrowser.script = () => undefined;
  const observation = await observe();
  const [, second] = scriptedBrowser.channelsWith('Target.setAutoAttach');
  assert.ok(second !== undefined && second !== failed);
  await observation.close();
  assert.deepEqual(scriptedBrowser.detachedChannels, [failed, second]);
});

test('restrictNavigations rejects and detaches its channel if a command fails during its setup', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { browser, scriptedBrowser } = await connect(context);
  scriptedBrowser.script = failingScript('Target.setDiscoverTargets');
  const rule = { allows: () => false, onRefused: () => {} };
  await assert.rejects(browser.restrictNavigations(rule), /no response/);
  const guardChannels = scriptedBrowser.channelsWith('Fetch.enable');
  assert.equal(guardChannels.length, 1);
  assert.deepEqual(scriptedBrowser.detachedChannels, guardChannels);
});

test('hangs returns true only if the browser does not respond in time and its connection is still open', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { browser, scriptedBrowser } = await connect(context);
  assert.equal(await browser.hangs(TEST_TIMEOUT_MS), false);
  scriptedBrowser.unansweredMethods.add('Browser.getVersion');
  assert.equal(await browser.hangs(1), true);
  const pendingResult = browser.hangs(TEST_TIMEOUT_MS);
  await browser.close();
  assert.equal(await pendingResult, false);
  assert.equal(await browser.hangs(TEST_TIMEOUT_MS), false);
});
