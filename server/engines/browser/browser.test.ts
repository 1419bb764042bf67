import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ScriptedBrowser } from '../../../tests/harness/scripted-browser.ts';
import { silentLog } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { Browser } from './browser.ts';

const END_MS = 60_000;

async function connect(context: TestContext): Promise<{ browser: Browser; scripted: ScriptedBrowser }> {
  const scripted = new ScriptedBrowser();
  context.after(() => scripted.close());
  const browser = await Browser.connect(scripted.pipes, silentLog, new AbortController().signal);
  context.after(() => browser.close());
  return { browser, scripted };
}

function failing(method: string): ScriptedBrowser['script'] {
  return command => {
    if (command.method === method) throw new Error('no response');
    return undefined;
  };
}

test('opens a new observation on another channel after an observation could not be opened', {
  timeout: END_MS,
}, async context => {
  const { browser, scripted } = await connect(context);
  scripted.script = failing('Target.setAutoAttach');
  const observe = (): Promise<Closeable> => browser.observe({ target: () => {} });
  await Promise.all([assert.rejects(observe(), /no response/), assert.rejects(observe(), /no response/)]);
  const [failed] = scripted.channelsWith('Target.setAutoAttach');
  assert.deepEqual(scripted.detachedChannels, [failed], 'the channel holds no new page');
  scripted.script = () => undefined;
  const observation = await observe();
  const [, second] = scripted.channelsWith('Target.setAutoAttach');
  assert.ok(second !== undefined && second !== failed);
  await observation.close();
  assert.deepEqual(scripted.detachedChannels, [failed, second]);
});

test('ends a restriction of navigations that could not be opened completely', { timeout: END_MS }, async context => {
  const { browser, scripted } = await connect(context);
  scripted.script = failing('Target.setDiscoverTargets');
  const rule = { allows: () => false, onRefused: () => {} };
  await assert.rejects(browser.restrictNavigations(rule), /no response/);
  const guardChannels = scripted.channelsWith('Fetch.enable');
  assert.equal(guardChannels.length, 1);
  assert.deepEqual(scripted.detachedChannels, guardChannels);
});
