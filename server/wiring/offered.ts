// The values that a create request can choose from: the configured regions, and the engines that passed the probe.
import type { OfferedChoices } from '../entry/http/normalize-create.ts';
import type { Foundation } from './foundation.ts';

export const offeredChoicesOf = ({
  config: { regions, engine },
  slots,
}: Pick<Foundation, 'config' | 'slots'>): OfferedChoices => ({
  regions,
  engines: [engine, ...[...slots.engines.keys()].filter(other => other !== engine)],
});
