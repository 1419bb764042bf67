// Repeats a statement that handles at most one batch of rows until all rows are handled.

export interface BatchLimits {
  /** Maximum number of rows per statement. */
  readonly batchSize: number;
  /** Maximum number of statements per run. A long backlog is handled in several runs. */
  readonly batchesMax: number;
}

/**
 * Returns the number of handled rows. `handle` handles one batch, and returns the number of its rows. If that number is
 * less than `batchSize`, no further row is due.
 */
export async function runInBatches(
  { batchSize, batchesMax }: BatchLimits,
  handle: (batchSize: number) => Promise<number>,
): Promise<number> {
  let handledCount = 0;
  for (let run = 0; run < batchesMax; run++) {
    const count = await handle(batchSize);
    handledCount += count;
    if (count < batchSize) break;
  }
  return handledCount;
}
