import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { QueuePosition } from '../../engines/store/rows/line.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { refusal } from '../limits/refusals.ts';
import { Line, type LineParts } from './line.ts';

/** Creates the line of one host with the given row functions. `left` contains the places that were removed. */
function createLine(rows: object) {
  const left: number[] = [];
  const clock = new ManualClock();
  const line = new Line({
    ...{ host: 'host', clock, log: silentLog },
    rows: {
      join: async () => ({ turn: 1, place: 7 }),
      leave: async (place: number) => void left.push(place),
      list: async () => [],
      refresh: async () => {},
      announceMove: async () => {},
      ...rows,
    },
    fleet: { isAlone: false, refreshHosts: async () => {}, roomByRegion: new Map() },
  } as unknown as LineParts); // Contains only the members that the line uses.
  const enter = (signal = new AbortController().signal) =>
    line.enter({
      ...{ application: 'shop' as ApplicationId, refused: REFUSAL, waitMs: 50_000, maxWaiting: 10 },
      ...{ attempt: async () => ({ refused: REFUSAL }), signal },
    });
  return { line, clock, left, enter };
}

const REFUSAL = refusal('host', 1, 1);
const waitForNextTurn = () => new Promise<void>(resolve => setImmediate(resolve));

test('refuses a create request that is joining the queue when the service stops, and removes the request from the queue', async () => {
  const joinResult = Promise.withResolvers<QueuePosition>();
  const { line, left, enter } = createLine({ join: () => joinResult.promise });
  const outcomePromise = enter();
  line.stop(() => new Error('the service is stopping'));
  joinResult.resolve({ turn: 1, place: 7 });
  assert.deepEqual(await Promise.race([outcomePromise, waitForNextTurn().then(() => 'waiting')]), { refused: REFUSAL });
  assert.deepEqual(left, [7]);
});

test('removes the row of a create whose caller disconnects while the row is being refreshed', async () => {
  const refreshResult = Promise.withResolvers<void>();
  const callerController = new AbortController();
  const { line, clock, left, enter } = createLine({ refresh: () => refreshResult.promise });
  const outcomePromise = enter(callerController.signal);
  await waitForNextTurn();
  await clock.advance(1_000);
  callerController.abort(new Error('gone'));
  await assert.rejects(outcomePromise);
  assert.deepEqual(left, [7]);
  refreshResult.resolve();
  await waitForNextTurn();
  assert.deepEqual(left, [7, 7]);
  line.stop(() => new Error('the service is stopping'));
});
