import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInBatches } from './in-batches.ts';

/** Simulates `count` due rows. Each call of `handle` is one statement, which handles at most one batch. */
function simulateDueRows(count: number) {
  const seen = { left: count, statements: 0 };
  const handle = async (batchSize: number): Promise<number> => {
    const handledCount = Math.min(batchSize, seen.left);
    seen.left -= handledCount;
    seen.statements += 1;
    return handledCount;
  };
  return { seen, handle };
}

test('handles one batch of rows after another until all rows are handled', async () => {
  const { seen, handle } = simulateDueRows(25);
  assert.equal(await runInBatches({ batchSize: 10, batchesMax: 50 }, handle), 25);
  assert.deepEqual(seen, { left: 0, statements: 3 });
});

test('leaves the rest of a long backlog to the next run', async () => {
  const { seen, handle } = simulateDueRows(25);
  assert.equal(await runInBatches({ batchSize: 10, batchesMax: 2 }, handle), 20);
  assert.deepEqual(seen, { left: 5, statements: 2 });
});
