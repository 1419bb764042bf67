// Records two kinds of authentication events in the audit log: the first use of a token, and the use of an agent key
// from an address that is not allowed for the key. The use from such an address is recorded at most once a minute for
// each key, so that repeated requests do not fill the audit log.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { AccountId, ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { RequestSource, TokenProof } from '../identity/caller.ts';
import type { Audit, AuditEvent } from './audit.ts';

const RECORD_INTERVAL_MS = 60_000;
/**
 * Maximum number of keys that are remembered for a minute. Beyond this number, the key with the oldest record is
 * forgotten, so its next refusal is recorded again.
 */
const REMEMBERED_KEYS_MAX = 10_000;

export interface CredentialNoticesParts {
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class CredentialNotices {
  readonly #parts: CredentialNoticesParts;
  /** For each key, the time at which a refusal was last recorded. The oldest time is first. */
  readonly #recordedAtMs = new Map<KeyId, number>();

  constructor(parts: CredentialNoticesParts) {
    this.#parts = parts;
  }

  recordRefusedAddress(
    { applicationId, keyId }: { applicationId: ApplicationId; keyId: KeyId },
    source: RequestSource,
  ): void {
    if (!this.#isDue(keyId)) return;
    this.#record({
      ...{ action: 'agent_key.refused_address', outcome: 'refused', actor: { kind: 'anonymous' } },
      ...{ applicationId, target: { kind: 'agent_key', id: keyId } },
      ...source,
    });
  }

  recordFirstUse(accountId: AccountId, token: TokenProof, source: RequestSource): void {
    this.#record({
      ...{ action: 'token.used_first', outcome: 'success', accountId },
      ...{ actor: { kind: 'account', id: accountId }, via: token, target: { kind: 'token', id: token.id } },
      ...source,
    });
  }

  #record(event: AuditEvent): void {
    const { audit, log } = this.#parts;
    audit.record(event).catch(error => log.warn('audit.not_recorded', { reason: reason(error) }));
  }

  #isDue(keyId: KeyId): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    const lastRecordedMs = this.#recordedAtMs.get(keyId);
    if (lastRecordedMs !== undefined && nowMs - lastRecordedMs < RECORD_INTERVAL_MS) return false;
    this.#recordedAtMs.delete(keyId);
    this.#recordedAtMs.set(keyId, nowMs);
    for (const [oldestKeyId, atMs] of this.#recordedAtMs) {
      if (this.#recordedAtMs.size <= REMEMBERED_KEYS_MAX && nowMs - atMs < RECORD_INTERVAL_MS) break;
      this.#recordedAtMs.delete(oldestKeyId);
    }
    return true;
  }
}
