import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { ObservedTarget, Observer } from '../../engines/browser/observation.ts';
import type { LiveSession } from '../sessions/live.ts';
import { Viewing } from './viewing.ts';

function openPage(): { target: ObservedTarget; end: () => void } {
  const listeners: Array<() => void> = [];
  const target = {
    ...{ id: 'page', kind: 'page', isNew: false, on: () => ({ close: () => {} }), post: () => {} },
    send: async () => ({}),
    whenGone: (listener: () => void) => void listeners.push(listener),
  } as unknown as ObservedTarget;
  const end = (): void => {
    for (const listener of listeners) listener();
  };
  return { target, end };
}

test('shows the pages to a later viewer if the first observation of the pages failed', async () => {
  const [first, second] = [openPage(), openPage()];
  let observationCount = 0;
  const live = {
    secrets: { cleanAll: (pages: unknown) => pages },
    browser: {
      observe: async ({ target }: Observer) => {
        observationCount++;
        target(observationCount === 1 ? first.target : second.target);
        if (observationCount === 1) throw new Error('no response');
        return { close: () => {} };
      },
      listPages: async () => [],
    },
  } as unknown as LiveSession;
  const viewing = new Viewing(live, () => ({ close: () => {} }), new TestClock());
  await assert.rejects(viewing.open(), /no response/);
  await viewing.open();
  assert.equal(observationCount, 2);
  first.end();
  assert.ok(viewing.page('page'), 'the end of the first observation does not remove what the second has found');
  second.end();
  assert.equal(viewing.page('page'), undefined);
  await viewing.close();
});
