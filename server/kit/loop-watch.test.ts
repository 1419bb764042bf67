import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as timer } from 'node:timers/promises';
import { systemClock } from './clock.ts';
import { LONG_TURN_MS, type LongTurn, loopWatch } from './loop-watch.ts';

function block(ms: number): void {
  for (const until = systemClock.monotonicMs() + ms; systemClock.monotonicMs() < until; );
}

async function turnsOf(work: () => Promise<void> | void): Promise<LongTurn[]> {
  const turns: LongTurn[] = [];
  const subscription = loopWatch.listen({
    isUnused: () => false,
    onDelay: () => {},
    onLongTurn: turn => turns.push(turn),
  });
  await timer(10);
  await work();
  await timer(100);
  await subscription.close();
  return turns;
}

test('reports a long turn of the event loop once, with the work that caused it', async () => {
  const work = { what: 'messages of a browser', sessionId: 'one' };
  const turns = await turnsOf(() => {
    loopWatch.enter({ what: 'messages of a client', sessionId: 'another' });
    loopWatch.leave();
    loopWatch.enter(work);
    block(3 * LONG_TURN_MS);
    loopWatch.leave();
  });
  const reportedTurns = turns.filter(({ markedWork: ran }) => ran === work);
  assert.equal(reportedTurns.length, 1);
  assert.ok((reportedTurns[0]?.ms ?? 0) >= 3 * LONG_TURN_MS);
  assert.ok((reportedTurns[0]?.cpuMs ?? 0) > 0);
});

test('reports a long turn with an unknown cause together with the work in progress', async () => {
  const work = { what: 'exportContext', applicationId: 'one' };
  const endWork = loopWatch.begin(work);
  const turns = await turnsOf(() => block(3 * LONG_TURN_MS));
  endWork();
  const [reportedTurn] = turns;
  assert.equal(reportedTurn?.markedWork, undefined);
  assert.deepEqual(reportedTurn?.underWay, [work]);
  assert.deepEqual((await turnsOf(() => block(3 * LONG_TURN_MS)))[0]?.underWay, []);
});

test('measures the delay less often while the process is unused, and measures it at once when the process is used again', async () => {
  let measurementCount = 0;
  const onDelay = () => void measurementCount++;
  const subscription = loopWatch.listen({ isUnused: () => true, onDelay, onLongTurn: () => {} });
  await timer(400);
  assert.ok(measurementCount >= 1 && measurementCount <= 2, `${measurementCount} measurements`);
  const countBefore = measurementCount;
  loopWatch.enter({ what: 'a request for the state' }, false);
  loopWatch.leave();
  assert.equal(measurementCount, countBefore);
  const end = loopWatch.begin({ what: 'a call' });
  assert.deepEqual([measurementCount, loopWatch.unusedMs], [countBefore + 1, 0]);
  end();
  await subscription.close();
});
