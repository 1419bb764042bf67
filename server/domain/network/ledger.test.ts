import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandClock } from '../../../tests/harness/hand-clock.ts';
import type { NamedEvent } from '../../engines/store/rows/events.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { Ledger } from './ledger.ts';

const SECOND_MS = 1_000;

class Scene {
  readonly clock = new HandClock();
  readonly told: NamedEvent[] = [];
  isDown = false;
  readonly ledger = new Ledger({
    session: 'session' as SessionId,
    events: {
      append: async (_, event) => {
        if (this.isDown) throw new Error('down');
        this.told.push(event);
      },
    },
    clock: this.clock,
    log: silentLog,
  });

  refused(hostname: string, times = 1): void {
    for (let time = 0; time < times; time++) this.ledger.note('network.refused', { hostname, rule: 'network_policy' });
  }

  get details(): ReadonlyArray<readonly unknown[]> {
    return this.told.map(({ detail }) => [detail?.hostname, detail?.count, detail?.total]);
  }
}

test('the same refusal is told once a second at most, with how often since and how often in all', async () => {
  const scene = new Scene();
  scene.refused('a.test', 3);
  assert.deepEqual(scene.told, []);
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details, [['a.test', 3, 3]]);
  scene.refused('a.test', 2);
  scene.refused('b.test');
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details.slice(1), [
    ['a.test', 2, 5],
    ['b.test', 1, 1],
  ]);
  await scene.clock.advance(10 * SECOND_MS);
  assert.equal(scene.told.length, 3, 'nothing new, nothing told');
});

test('kinds are told apart by all their facts, and stamped with the time of the last', async () => {
  const scene = new Scene();
  scene.ledger.note('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_timed_out' });
  scene.ledger.note('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_unreachable' });
  await scene.clock.advance(400);
  scene.ledger.note('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_timed_out' });
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(
    scene.told.map(({ type, detail, at }) => [type, detail?.reason, detail?.count, at?.getTime()]),
    [
      ['proxy.failed', 'proxy_timed_out', 2, 400],
      ['proxy.failed', 'proxy_unreachable', 1, 0],
    ],
  );
});

test('the end tells what is left, at once', async () => {
  const scene = new Scene();
  scene.refused('a.test');
  await scene.ledger.close();
  assert.deepEqual(scene.details, [['a.test', 1, 1]]);
  scene.refused('late.test');
  await scene.clock.advance(10 * SECOND_MS);
  assert.equal(scene.told.length, 1, 'nothing is told by itself afterwards');
});

test('a page that tries thousands of hosts costs a bounded list; what is not told alone is told in sum', async () => {
  const scene = new Scene();
  for (let host = 0; host < 5_000; host++) scene.refused(`h${host}.test`);
  await scene.clock.advance(SECOND_MS);
  const early = scene.told.length;
  assert.ok(early >= 100 && early <= 500, `${early} events`);
  for (let host = 0; host < 5_000; host++) scene.refused(`h${host}.test`);
  await scene.clock.advance(60 * SECOND_MS, SECOND_MS);
  assert.equal(scene.told.length, early, 'silent until the end');
  await scene.ledger.close();
  const total = [...new Map(scene.details.map(([host, , all]) => [host, Number(all)])).values()];
  assert.equal(
    total.reduce((sum, one) => sum + one, 0),
    10_000,
  );
  assert.ok(scene.told.length < 1_000, `${scene.told.length} events`);
});

test('a store that is down loses the event, not the session, and later ones are told', async () => {
  const scene = new Scene();
  scene.isDown = true;
  scene.refused('a.test');
  await scene.clock.advance(SECOND_MS);
  scene.isDown = false;
  scene.refused('a.test');
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details, [['a.test', 1, 2]]);
});
