// Summarizes measurements by median and extremes, not by the mean, which a single stall would dominate.

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly count: number;
}

/**
 * One quantity, measured alternately on two sides. The ratio is computed for each pair, so that slow moments cancel
 * out.
 */
export interface Comparison {
  readonly base: Summary;
  readonly ours: Summary;
  readonly ratio: Summary;
}

export function summaryOf(values: readonly number[]): Summary {
  const sortedValues = values.toSorted((one, other) => one - other);
  const [min, max] = [sortedValues[0], sortedValues.at(-1)];
  if (min === undefined || max === undefined) throw new Error('a summary needs at least one measured value');
  return { median: medianOfSorted(sortedValues), min, max, count: sortedValues.length };
}

export const median = (values: readonly number[]): number => summaryOf(values).median;

export function comparisonOf(base: readonly number[], ours: readonly number[]): Comparison {
  const ratios = base.map((value, index) => (ours[index] ?? Number.NaN) / value);
  return { base: summaryOf(base), ours: summaryOf(ours), ratio: summaryOf(ratios) };
}

function medianOfSorted(sorted: readonly number[]): number {
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}
