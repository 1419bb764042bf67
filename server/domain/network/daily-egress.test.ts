import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EgressPolicy } from '../../engines/egress/policy.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import type { SessionEgress } from '../sessions/browser-host.ts';
import { DailyEgress } from './daily-egress.ts';

const SHOP = 'shop' as ApplicationId;
const BANK = 'bank' as ApplicationId;
const USED_UP_POLICY: EgressPolicy = Object.create(null);

class Scene {
  now = new Date('2026-11-23T23:59:58Z');
  isDown = false;
  /** The rows of the database, by day and application. */
  readonly storedBytes = new Map<string, number>();
  readonly endedSessions: Array<[SessionId, SessionEnd]> = [];
  readonly limits = new Map<ApplicationId, number>();
  readonly egress: DailyEgress;

  constructor() {
    this.egress = new DailyEgress({
      clock: { now: () => this.now, monotonicMs: () => 0, sleep: async () => {} },
      log: silentLog,
      usedUpPolicy: USED_UP_POLICY,
      end: async (id, end) => void this.endedSessions.push([id, end]),
      rows: {
        add: async (day, moved) => {
          if (this.isDown) throw new Error('down');
          return [...moved].map(([applicationId, more]) => {
            const name = `${day} ${applicationId}`;
            const bytes = (this.storedBytes.get(name) ?? 0) + more;
            this.storedBytes.set(name, bytes);
            const egressBytesPerDay = this.limits.get(applicationId) ?? 1_000_000;
            return { applicationId, bytes, configured: { browsers: { egressBytesPerDay } } };
          });
        },
      },
    });
  }

  async attendSession(name: string, applicationId: ApplicationId) {
    const id = name as SessionId;
    const one = { id, bytes: 0, policies: [] as EgressPolicy[] };
    const egress: SessionEgress = Object.assign(Object.create(null), {
      counters: () => ({ bytesUp: one.bytes / 10, bytesDown: one.bytes * 0.9, bytesByProxy: 0 }),
      replacePolicy: (policy: EgressPolicy) => one.policies.push(policy),
    });
    await this.egress.attend({ id, egress }, { applicationId });
    return one;
  }
}

test('adds the new bytes of each session to the daily total of its application', async () => {
  const scene = new Scene();
  const [one, two, other] = [
    await scene.attendSession('1', SHOP),
    await scene.attendSession('2', SHOP),
    await scene.attendSession('3', BANK),
  ];
  assert.deepEqual(await scene.egress.count(), { ended: 0 });
  assert.equal(scene.storedBytes.size, 0);
  [one.bytes, two.bytes, other.bytes] = [100, 20, 7_000];
  await scene.egress.count();
  one.bytes = 150;
  await scene.egress.count();
  scene.now = new Date('2026-11-24T00:00:03Z');
  one.bytes = 1_150;
  await scene.egress.count();
  assert.deepEqual(Object.fromEntries(scene.storedBytes), {
    '2026-11-23 shop': 170,
    '2026-11-23 bank': 7_000,
    '2026-11-24 shop': 1_000,
  });
  assert.deepEqual(scene.endedSessions, []);
});

test('counts the final bytes of a closed session exactly once, even after a failed write', async () => {
  const scene = new Scene();
  const one = await scene.attendSession('1', SHOP);
  one.bytes = 100;
  scene.isDown = true;
  await assert.rejects(scene.egress.count(), /down/);
  one.bytes = 130;
  await scene.egress.salvage(one);
  scene.egress.ended(one);
  one.bytes = 500;
  scene.isDown = false;
  await scene.egress.count();
  await scene.egress.count();
  assert.deepEqual(Object.fromEntries(scene.storedBytes), { '2026-11-23 shop': 130 });
});

test('ends all sessions of an application that has reached its daily limit, and no sessions of other applications', async () => {
  const scene = new Scene();
  const [one, two, other] = [
    await scene.attendSession('1', SHOP),
    await scene.attendSession('2', SHOP),
    await scene.attendSession('3', BANK),
  ];
  scene.limits.set(SHOP, 1_000);
  [one.bytes, other.bytes] = [999, 5_000];
  assert.deepEqual(await scene.egress.count(), { ended: 0 });
  one.bytes = 1_000;
  assert.deepEqual(await scene.egress.count(), { ended: 2 });
  const detail = 'the application used up its egressBytesPerDay (1000)';
  const end = { status: 'ERROR', reason: 'egress_limit', detail };
  assert.deepEqual(scene.endedSessions, [
    ['1', end],
    ['2', end],
  ]);
  assert.deepEqual([one.policies, two.policies, other.policies], [[USED_UP_POLICY], [USED_UP_POLICY], []]);
});
