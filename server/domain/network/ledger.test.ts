import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { NamedEvent } from '../../engines/store/rows/events.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { SecretTexts } from '../../kit/secret-texts.ts';
import { Ledger } from './ledger.ts';

const SECOND_MS = 1_000;

class Scene {
  readonly clock = new ManualClock();
  readonly reportedEvents: NamedEvent[] = [];
  isDown = false;
  readonly secrets = new SecretTexts();
  readonly ledger = new Ledger({
    session: 'session' as SessionId,
    events: {
      append: async (_, event) => {
        if (this.isDown) throw new Error('down');
        this.reportedEvents.push(event);
      },
    },
    secrets: this.secrets,
    clock: this.clock,
    log: silentLog,
  });

  countRefusals(hostname: string, times = 1): void {
    for (let time = 0; time < times; time++) this.ledger.count('network.refused', { hostname, rule: 'network_policy' });
  }

  get details(): ReadonlyArray<readonly unknown[]> {
    return this.reportedEvents.map(({ detail }) => [detail?.hostname, detail?.count, detail?.total]);
  }
}

test('reports identical refusals at most once a second, with the new count and the total', async () => {
  const scene = new Scene();
  scene.countRefusals('a.test', 3);
  assert.deepEqual(scene.reportedEvents, []);
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details, [['a.test', 3, 3]]);
  scene.countRefusals('a.test', 2);
  scene.countRefusals('b.test');
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details.slice(1), [
    ['a.test', 2, 5],
    ['b.test', 1, 1],
  ]);
  await scene.clock.advance(10 * SECOND_MS);
  assert.equal(scene.reportedEvents.length, 3, 'nothing is reported without new refusals');
});

test('masks typed text that a page has encoded in a host name', async () => {
  const scene = new Scene();
  scene.secrets.add('plain & secret');
  const hex = Buffer.from('plain & secret').toString('hex');
  scene.countRefusals(`${hex}.a.test`);
  scene.ledger.count('navigation.refused', { hostname: `x-${hex}.a.test`, rule: 'allowed_domains' });
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details, [
    ['***.a.test', 1, 1],
    ['x-***.a.test', 1, 1],
  ]);
});

test('counts refusals with different details separately, with the time of the latest refusal', async () => {
  const scene = new Scene();
  scene.ledger.count('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_timed_out' });
  scene.ledger.count('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_unreachable' });
  await scene.clock.advance(400);
  scene.ledger.count('proxy.failed', { proxy: 'proxies.0', reason: 'proxy_timed_out' });
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(
    scene.reportedEvents.map(({ type, detail, at }) => [type, detail?.reason, detail?.count, at?.getTime()]),
    [
      ['proxy.failed', 'proxy_timed_out', 2, 400],
      ['proxy.failed', 'proxy_unreachable', 1, 0],
    ],
  );
});

test('reports the remaining refusals immediately when the ledger is closed', async () => {
  const scene = new Scene();
  scene.countRefusals('a.test');
  await scene.ledger.close();
  assert.deepEqual(scene.details, [['a.test', 1, 1]]);
  scene.countRefusals('late.test');
  await scene.clock.advance(10 * SECOND_MS);
  assert.equal(scene.reportedEvents.length, 1, 'nothing is reported after close');
});

test('limits the events for a page that contacts thousands of host names, and reports the remaining refusals when the ledger is closed', async () => {
  const scene = new Scene();
  for (let host = 0; host < 5_000; host++) scene.countRefusals(`h${host}.test`);
  await scene.clock.advance(SECOND_MS);
  const earlyCount = scene.reportedEvents.length;
  assert.ok(earlyCount >= 100 && earlyCount <= 500, `${earlyCount} events`);
  for (let host = 0; host < 5_000; host++) scene.countRefusals(`h${host}.test`);
  await scene.clock.advance(60 * SECOND_MS, SECOND_MS);
  assert.equal(scene.reportedEvents.length, earlyCount, 'silent until the end');
  await scene.ledger.close();
  const totals = [...new Map(scene.details.map(([host, , all]) => [host, Number(all)])).values()];
  assert.equal(
    totals.reduce((sum, one) => sum + one, 0),
    10_000,
  );
  assert.ok(scene.reportedEvents.length < 1_000, `${scene.reportedEvents.length} events`);
});

test('loses only one event if the store is unavailable, and includes the lost count in the next total', async () => {
  const scene = new Scene();
  scene.isDown = true;
  scene.countRefusals('a.test');
  await scene.clock.advance(SECOND_MS);
  scene.isDown = false;
  scene.countRefusals('a.test');
  await scene.clock.advance(SECOND_MS);
  assert.deepEqual(scene.details, [['a.test', 1, 2]]);
});
