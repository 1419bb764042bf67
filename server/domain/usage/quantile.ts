// Quantiles of a histogram.

/**
 * Returns the quantile for `share`, interpolated within its bucket. `counts` has one number for each of `bounds`, and
 * one for the values above the last bound. If the quantile is among those values, the last bound is returned. Undefined
 * if there are no values.
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = total * share;
  let countBelow = 0;
  for (const [at, count] of counts.entries()) {
    const [low, high] = [bounds[at - 1] ?? 0, bounds[at]];
    if (high === undefined) return low;
    if (count > 0 && countBelow + count >= rank) return low + ((high - low) * (rank - countBelow)) / count;
    countBelow += count;
  }
  return bounds.at(-1);
}
