import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { noTracer } from '../../kit/trace.ts';
import type { DecidedEnd } from './actors.ts';
import { Endings } from './endings.ts';
import { LiveSessions } from './live.ts';
import { StartingSessions } from './starting.ts';
import { Watchers } from './watchers.ts';

const OUTAGE_START_MS = 60_000;
const OUTAGE_MS = 7_200_000;
const ID = 's' as SessionId;
const CRASHED_END: DecidedEnd = { status: 'ERROR', reason: 'crashed' };

/**
 * Ends a session while the database does not respond to the statement `failingStatement`, and again two hours later,
 * when it does.
 */
async function endInOutage(failingStatement: 'decideEnd' | 'finish') {
  const clock = new ManualClock();
  const row: SessionRow = Object.assign(Object.create(null), { id: ID, proxyBytes: 0, end: CRASHED_END });
  const times: Record<string, Date | undefined> = {};
  const decidedReasons: string[] = [];
  let isReachable = false;
  const write = async (statement: string, at: Date): Promise<SessionRow> => {
    if (statement === failingStatement && !isReachable) throw new Error('the database does not respond');
    times[statement] ??= at;
    return row;
  };
  const endings = new Endings({
    ...{ clock, log: silentLog, trace: noTracer },
    rows: {
      byId: async () => row,
      decideEnd: (_, end, now) => {
        decidedReasons.push(end.reason);
        return write('decideEnd', now);
      },
      finish: (_, endedAt) => write('finish', endedAt),
    },
    ...{ liveSessions: new LiveSessions(), starting: new StartingSessions(() => {}) },
    watchers: new Watchers([], silentLog),
    onEnd: () => {},
    isElsewhere: () => false,
    dueTimes: endedAt => ({ filesDueAt: endedAt, forgetDueAt: endedAt }),
  });
  await clock.advance(OUTAGE_START_MS);
  const at = clock.now();
  await assert.rejects(endings.end(ID, CRASHED_END), /does not respond/);
  assert.equal(endings.isUnwritten(ID), true);
  await clock.advance(OUTAGE_MS / 2);
  assert.equal(await endings.settle(), 0);
  await clock.advance(OUTAGE_MS / 2);
  isReachable = true;
  await endings.end(ID, { status: 'TIMED_OUT', reason: 'timed_out' });
  assert.deepEqual([endings.isUnwritten(ID), endings.hasUnwrittenEnds], [false, false]);
  assert.deepEqual(new Set(decidedReasons), new Set(['crashed']), 'the first end applies');
  return { at, times };
}

for (const failingStatement of ['decideEnd', 'finish'] as const)
  test(`an end that could not be written (${failingStatement}) is written later with the time of its first attempt`, async () => {
    const { at, times } = await endInOutage(failingStatement);
    assert.deepEqual(times, { decideEnd: at, finish: at });
  });
