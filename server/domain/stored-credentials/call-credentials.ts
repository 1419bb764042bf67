// The credential of one HTTP call: opens it for a host to which it may be sent, and counts its use.
import type { HttpBinding } from '../../../contract/configured-operations.ts';
import type { CredentialValue, StoredCredentialType } from '../../../contract/stored-credentials.ts';
import type { CredentialUse, StoredCredentialWithVersion } from '../../engines/store/rows/stored-credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Audit, AuditEvent } from '../audit/audit.ts';
import { fault } from '../faults.ts';
import { utcDay } from '../limits/utc-day.ts';
import { secretsIn } from './credential-values.ts';
import type { ValueSeal } from './stored-credentials.ts';

export type Auth = NonNullable<HttpBinding['auth']>;

export interface CallCredential {
  readonly headers: Readonly<Record<string, string>>;
  /** Strings that are removed from the response. */
  readonly secrets: readonly string[];
}

export interface CallCredentialsParts {
  readonly store: Pick<Store, 'storedCredentials' | 'atomically'>;
  readonly seal: Pick<ValueSeal, 'open'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
}

export interface CredentialCall {
  readonly applicationId: ApplicationId;
  readonly credentialId: string;
  readonly operationId: string;
  readonly keyId: KeyId;
}

const USES_PER_RUN_MAX = 500;

export class CallCredentials {
  readonly #parts: CallCredentialsParts;

  constructor(parts: CallCredentialsParts) {
    this.#parts = parts;
  }

  /** Returns the problem with a binding to this host, or undefined if the binding is valid. */
  async findProblem(application: ApplicationId, auth: Auth, host: string): Promise<string | undefined> {
    const row = await this.#parts.store.storedCredentials.get(application, auth.credentialId);
    return row ? this.#problemOf(row, auth, host) : `names the credential ${auth.credentialId}, which does not exist`;
  }

  /** @throws Fault `credential_missing` */
  async openForCall(application: ApplicationId, auth: Auth, host: string): Promise<CallCredential> {
    const { store, seal } = this.#parts;
    const row = await store.storedCredentials.get(application, auth.credentialId);
    const problem = row ? this.#problemOf(row, auth, host) : 'names a credential that does not exist';
    if (!row || problem !== undefined) throw credentialMissing(problem ?? '');
    const value = await seal.open(row.current, row.current.sealed);
    const type = row.current.type as StoredCredentialType; // Validated by the contract when it was written.
    return { headers: headersOf(auth, value), secrets: secretsIn(type, value) };
  }

  /** Counts a call, for `lastUsedAt` and the audit log. */
  async countUse(use: CredentialCall): Promise<void> {
    const now = this.#parts.clock.now();
    await this.#parts.store.storedCredentials.count({ ...use, day: utcDay(now) }, now);
  }

  /** A clock task. For each past day, writes an audit entry for each operation and key that used a credential. */
  async recordUses(): Promise<{ recorded: number }> {
    const { store, audit, clock } = this.#parts;
    const recorded = await store.atomically(async trx => {
      const uses = await trx.storedCredentials.takeUses(utcDay(clock.now()), USES_PER_RUN_MAX);
      // Written in the order of the application ids. Each entry locks the chain of its application until the commit, so
      // a different order could cause a deadlock.
      for (const use of uses.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1)))
        await audit.record(auditEventOf(use), trx);
      return uses.length;
    });
    return { recorded };
  }

  /** A clock task. Destroys replaced versions whose `destroyAt` has passed. */
  async destroyDue(): Promise<{ destroyed: number }> {
    const { store, clock } = this.#parts;
    return { destroyed: await store.storedCredentials.destroyDue(clock.now()) };
  }

  #problemOf({ current, id }: StoredCredentialWithVersion, auth: Auth, host: string): string | undefined {
    if (!ALLOWED_TYPES[auth.as].includes(current.type))
      return `names the credential ${id}, which cannot be sent as ${auth.as}`;
    if (!current.hosts.includes(host)) return `names the credential ${id}, which may not be sent to this host`;
    if (current.expiresAt && current.expiresAt <= this.#parts.clock.now())
      return `names the credential ${id}, which has expired`;
    return undefined;
  }
}

const auditEventOf = ({ applicationId, credentialId, operationId, keyId, day, calls }: CredentialUse): AuditEvent => ({
  ...{ actor: { kind: 'agent_key', id: keyId }, action: 'credential.used', applicationId, outcome: 'success' },
  ...{ target: { kind: 'credential', id: credentialId }, details: { operationId, day, calls } },
});

const ALLOWED_TYPES: Readonly<Record<Auth['as'], readonly string[]>> = {
  bearer: ['api_key'],
  header: ['api_key'],
  basic: ['basic', 'oauth_client'],
};

function headersOf({ as, header = '' }: Auth, value: CredentialValue): Record<string, string> {
  const { key = '', username, password, clientId = '', clientSecret = '' } = value;
  if (as === 'bearer') return { authorization: `Bearer ${key}` };
  if (as === 'header') return { [header]: key };
  const pair = username === undefined ? `${clientId}:${clientSecret}` : `${username}:${password}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

export const credentialMissing = (problem: string): Error =>
  fault('credential_missing', `The operation ${problem}. Nothing was started.`, {
    advice: 'Ask a developer of the application to correct the credential, or the operation that names it.',
  });
