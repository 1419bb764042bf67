// Parses the parts of the Prometheus text format that the console needs.
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;

export function readMetrics(text: string): Sample[] {
  return text.split('\n').flatMap(line => {
    const match = LINE.exec(line);
    if (!match?.[1]) return [];
    const labels = [...(match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]);
    return [{ name: match[1], labels: Object.fromEntries(labels), value: Number(match[3]) }];
  });
}

/** The sum of all samples with this name, and with the label if given. */
export function metric(samples: readonly Sample[], name: string, label?: readonly [string, string]): number {
  return samples
    .filter(sample => sample.name === name && (label === undefined || sample.labels[label[0]] === label[1]))
    .reduce((sum, { value }) => sum + value, 0);
}

/** The quantile of a histogram, as the upper bound of its bucket. */
export function quantile(samples: readonly Sample[], name: string, share: number): number | undefined {
  const buckets = samples
    .filter(sample => sample.name === `${name}_bucket`)
    .map(({ labels, value }) => ({ edge: labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le), value }))
    .sort((a, b) => a.edge - b.edge);
  const all = buckets.at(-1)?.value ?? 0;
  return all === 0 ? undefined : buckets.find(({ value }) => value >= all * share)?.edge;
}
