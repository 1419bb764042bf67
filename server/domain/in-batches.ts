// Repeats a statement that handles at most one batch of rows until no row is left.

export interface BatchLimits {
  /** Maximum number of rows per statement. */
  readonly batch: number;
  /** Maximum number of statements per run. A long backlog is handled in several runs. */
  readonly batchesMax: number;
}

/** Returns the number of rows. `handle` returns how many it handled; fewer than `batch` means that none is left. */
export async function inBatches(
  { batch, batchesMax }: BatchLimits,
  handle: (batch: number) => Promise<number>,
): Promise<number> {
  let handled = 0;
  for (let run = 0; run < batchesMax; run++) {
    const count = await handle(batch);
    handled += count;
    if (count < batch) break;
  }
  return handled;
}
