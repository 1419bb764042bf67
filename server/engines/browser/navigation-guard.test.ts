import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ScriptedBrowser, targetInfoOf } from '../../../tests/harness/scripted-browser.ts';
import { eventually } from '../../../tests/harness/until.ts';
import { Mux } from './mux.ts';
import { NavigationGuard } from './navigation-guard.ts';

const END_MS = 90_000;
const ALLOWED = 'https://allowed.test/';
const REFUSED = 'https://refused.test/';

interface GuardScene {
  readonly scripted: ScriptedBrowser;
  /** The hosts that were refused. */
  readonly refused: readonly string[];
  /** Reports that a page has changed. */
  reportChange(targetId: string, url: string, isAttached?: boolean): void;
}

async function openScene(context: TestContext): Promise<GuardScene> {
  const scripted = new ScriptedBrowser();
  context.after(() => scripted.close());
  const mux = new Mux(scripted.pipes.fifoIn, scripted.pipes.fifoOut, error => assert.fail(String(error)));
  context.after(() => mux.close());
  const refused: string[] = [];
  const guard = new NavigationGuard(mux, {
    allows: hostname => hostname === 'allowed.test',
    onRefused: hostname => void refused.push(hostname),
  });
  await guard.open(() => {});
  return {
    scripted,
    refused,
    reportChange: (targetId, url, isAttached) => {
      const targetInfo = targetInfoOf(targetId, url, isAttached);
      scripted.event('Target.targetInfoChanged', { targetInfo }, guard.channelId);
    },
  };
}

const frameTree = (url: string): object => ({ frameTree: { frame: { url } } });

test('checks a page again if it has changed during the check', { timeout: END_MS }, async context => {
  const { scripted, refused, reportChange } = await openScene(context);
  let shown = ALLOWED;
  scripted.script = ({ method }) => {
    if (method === 'Page.getFrameTree') return frameTree(shown);
    if (method === 'Target.detachFromTarget' && shown === ALLOWED) {
      shown = REFUSED;
      reportChange('page', REFUSED);
    }
    return undefined;
  };
  reportChange('page', REFUSED);
  await eventually('the page to be cleared', () => scripted.channelsWith('Page.navigate').length > 0);
  assert.deepEqual(refused, ['refused.test']);
});

test('does not check a page again because of the events that the check itself causes', {
  timeout: END_MS,
}, async context => {
  const { scripted, reportChange } = await openScene(context);
  const attachedTo: unknown[] = [];
  scripted.script = ({ method, params }) => {
    if (method === 'Page.getFrameTree') return frameTree(ALLOWED);
    if (method === 'Target.attachToTarget') {
      attachedTo.push(params.targetId);
      reportChange(String(params.targetId), REFUSED, true);
    }
    if (method === 'Target.detachFromTarget') reportChange(String(attachedTo.at(-1)), REFUSED, false);
    return undefined;
  };
  for (const targetId of ['one', 'two']) {
    reportChange(targetId, REFUSED, false);
    const isChecked = (): boolean =>
      attachedTo.includes(targetId) && scripted.detachedChannels.length === attachedTo.length;
    await eventually(`${targetId} to be checked`, isChecked);
  }
  assert.deepEqual(attachedTo, ['one', 'two']);
});
