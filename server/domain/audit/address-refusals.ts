// Records that an agent key was sent from an address that it may not be used from: once a minute for each key, so that a caller
// who repeats this does not fill the audit log. The answer does not wait for it.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { RequestSource } from '../identity/caller.ts';
import type { Audit } from './audit.ts';

const EVERY_MS = 60_000;
/** Keys that were refused in the last minute. More are recorded each time. */
const KNOWN_MAX = 10_000;

export interface AddressRefusalsParts {
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class AddressRefusals {
  readonly #parts: AddressRefusalsParts;
  /** By key, oldest first. */
  readonly #recordedMs = new Map<KeyId, number>();

  constructor(parts: AddressRefusalsParts) {
    this.#parts = parts;
  }

  refused({ applicationId, keyId }: { applicationId: ApplicationId; keyId: KeyId }, source: RequestSource): void {
    if (!this.#isDue(keyId)) return;
    const { audit, log } = this.#parts;
    const recorded = audit.record({
      ...{ action: 'agent_key.refused_address', outcome: 'refused', actor: { kind: 'anonymous' } },
      ...{ applicationId, target: { kind: 'agent_key', id: keyId } },
      ...source,
    });
    recorded.catch(error => log.warn('audit.not_recorded', { reason: reason(error) }));
  }

  #isDue(keyId: KeyId): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    const lastMs = this.#recordedMs.get(keyId);
    if (lastMs !== undefined && nowMs - lastMs < EVERY_MS) return false;
    this.#recordedMs.delete(keyId);
    this.#recordedMs.set(keyId, nowMs);
    for (const [oldest, atMs] of this.#recordedMs) {
      if (this.#recordedMs.size <= KNOWN_MAX && nowMs - atMs < EVERY_MS) break;
      this.#recordedMs.delete(oldest);
    }
    return true;
  }
}
