import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WorkLimiter, WorkLimitReached } from './work-limiter.ts';

const limits = { name: 'try', runningMax: { session: 1, application: 2, process: 3 }, waitingMax: 2, withinMs: 60_000 };

/** Starts work that runs until the test ends it. */
function begin(limiter: WorkLimiter, application: string, session: string, signal?: AbortSignal) {
  const gate = Promise.withResolvers<void>();
  let runs = false;
  const done = limiter.run(
    { application, session },
    async () => {
      runs = true;
      await gate.promise;
      runs = false;
    },
    signal,
  );
  return { done, end: gate.resolve, runs: () => runs };
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

describe('WorkLimiter', () => {
  it('work above the limit of its session waits until other work of the session ends, and does not delay work of other sessions', async () => {
    const limiter = new WorkLimiter(limits);
    const [first, same, other] = [begin(limiter, 'a', '1'), begin(limiter, 'a', '1'), begin(limiter, 'b', '2')];
    await turn();
    assert.deepEqual([first.runs(), same.runs(), other.runs()], [true, false, true]);
    other.end();
    await other.done;
    assert.equal(same.runs(), false);
    first.end();
    await first.done;
    await turn();
    assert.equal(same.runs(), true);
    same.end();
    await same.done;
  });

  it('rejects work when the queue is full', async () => {
    const limiter = new WorkLimiter(limits);
    const all = ['1', '2', '3', '4'].map(session => begin(limiter, 'a', session));
    await assert.rejects(begin(limiter, 'a', '5').done, WorkLimitReached);
    for (const { end } of all) end();
    await Promise.all(all.map(({ done }) => done));
  });

  it('stops waiting after the time limit, or when the caller disconnects', async () => {
    const limiter = new WorkLimiter({ ...limits, withinMs: 20 });
    const firstWork = begin(limiter, 'a', '1');
    await assert.rejects(begin(limiter, 'a', '1').done, /cannot try now: the operation did not start within 20 ms/);
    const goneController = new AbortController();
    const waitingWork = begin(limiter, 'a', '1', goneController.signal);
    goneController.abort(new Error('went away'));
    await assert.rejects(waitingWork.done, /went away/);
    firstWork.end();
    await firstWork.done;
    const nextWork = begin(limiter, 'a', '1');
    nextWork.end();
    await nextWork.done;
  });
});
