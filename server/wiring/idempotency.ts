// The wiring of idempotency: the keys of repeatable writes, and the task that removes expired ones.
import { Idempotency } from '../domain/idempotency/idempotency.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

const SWEEP_KEYS_INTERVAL_MS = 60_000;

export function openIdempotency({ host, clock }: Runtime, { store, secret, fleet }: Foundation) {
  const service = new Idempotency({ rows: store.idempotency, host, secret, clock, isLiving: id => fleet.isLiving(id) });
  return { service, tasks: [{ name: 'sweep_keys', everyMs: SWEEP_KEYS_INTERVAL_MS, run: () => service.sweep() }] };
}
