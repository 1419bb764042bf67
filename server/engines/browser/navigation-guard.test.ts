import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ScriptedBrowser, targetInfoOf } from '../../../tests/harness/scripted-browser.ts';
import { eventually } from '../../../tests/harness/until.ts';
import { Mux } from './mux.ts';
import { NavigationGuard } from './navigation-guard.ts';

const TEST_TIMEOUT_MS = 90_000;
const ALLOWED_URL = 'https://allowed.test/';
const REFUSED_URL = 'https://refused.test/';

interface GuardScene {
  readonly scriptedBrowser: ScriptedBrowser;
  readonly refusedHosts: readonly string[];
  /** Sends the event `Target.targetInfoChanged` for a page to the guard. */
  reportChange(targetId: string, url: string, isAttached?: boolean): void;
}

async function openScene(context: TestContext): Promise<GuardScene> {
  const scriptedBrowser = new ScriptedBrowser();
  context.after(() => scriptedBrowser.close());
  const mux = new Mux(scriptedBrowser.pipes.fifoIn, scriptedBrowser.pipes.fifoOut, error => assert.fail(String(error)));
  context.after(() => mux.close());
  const refusedHosts: string[] = [];
  const guard = new NavigationGuard(mux, {
    allows: hostname => hostname === 'allowed.test',
    onRefused: hostname => void refusedHosts.push(hostname),
  });
  await guard.open(() => {});
  return {
    scriptedBrowser,
    refusedHosts,
    reportChange: (targetId, url, isAttached) => {
      const targetInfo = targetInfoOf(targetId, url, isAttached);
      scriptedBrowser.sendEvent('Target.targetInfoChanged', { targetInfo }, guard.channelId);
    },
  };
}

const frameTree = (url: string): object => ({ frameTree: { frame: { url } } });

test('checks a page again if it has changed during the check', { timeout: TEST_TIMEOUT_MS }, async context => {
  const { scriptedBrowser, refusedHosts, reportChange } = await openScene(context);
  let shownUrl = ALLOWED_URL;
  scriptedBrowser.script = ({ method }) => {
    if (method === 'Page.getFrameTree') return frameTree(shownUrl);
    if (method === 'Target.detachFromTarget' && shownUrl === ALLOWED_URL) {
      shownUrl = REFUSED_URL;
      reportChange('page', REFUSED_URL);
    }
    return undefined;
  };
  reportChange('page', REFUSED_URL);
  await eventually('the page to be cleared', () => scriptedBrowser.channelsWith('Page.navigate').length > 0);
  assert.deepEqual(refusedHosts, ['refused.test']);
});

test('does not check a page again because of the events that the check itself causes', {
  timeout: TEST_TIMEOUT_MS,
}, async context => {
  const { scriptedBrowser, reportChange } = await openScene(context);
  const attachedTargetIds: unknown[] = [];
  scriptedBrowser.script = ({ method, params }) => {
    if (method === 'Page.getFrameTree') return frameTree(ALLOWED_URL);
    if (method === 'Target.attachToTarget') {
      attachedTargetIds.push(params.targetId);
      reportChange(String(params.targetId), REFUSED_URL, true);
    }
    if (method === 'Target.detachFromTarget') reportChange(String(attachedTargetIds.at(-1)), REFUSED_URL, false);
    return undefined;
  };
  for (const targetId of ['one', 'two']) {
    reportChange(targetId, REFUSED_URL, false);
    const isChecked = (): boolean =>
      attachedTargetIds.includes(targetId) && scriptedBrowser.detachedChannels.length === attachedTargetIds.length;
    await eventually(`${targetId} to be checked`, isChecked);
  }
  assert.deepEqual(attachedTargetIds, ['one', 'two']);
});
