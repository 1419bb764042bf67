// The audit log: entries are added and read, never changed.
import type { AccountId, ApplicationId, AuditId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface Named {
  readonly kind: string;
  readonly id: string;
}

export interface NewAuditRow {
  readonly id: AuditId;
  /** Absent: it concerns no application. */
  readonly applicationId?: ApplicationId;
  readonly accountId?: AccountId;
  readonly at: Date;
  readonly action: string;
  /** Without a name, that of an account is looked up. */
  readonly actor: {
    readonly kind: 'account' | 'agent_key' | 'operator' | 'anonymous';
    readonly id?: string;
    readonly name?: string;
  };
  readonly via?: Named;
  readonly target?: Named;
  readonly outcome: 'success' | 'refused';
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
  readonly details: JsonObject;
}

export interface AuditRow extends NewAuditRow {
  /** Within the application, without gaps. */
  readonly number: number;
}

export interface SealRow {
  readonly chain: string;
  readonly number: number;
  readonly firstNumber: number;
  readonly lastNumber: number;
  /** SHA-256 of each entry that it covers. */
  readonly rowDigests: readonly Buffer[];
  readonly jws: string;
  readonly at: Date;
}

export interface AuditFilter {
  readonly limit: number;
  /** Only those older than this one. */
  readonly before?: AuditId;
  readonly action?: string;
  readonly actorId?: string;
  readonly after?: Date;
}

export interface AuditRows {
  /** Resolves when the row is durable. */
  insert(row: NewAuditRow): Promise<void>;
  /** Newest first. `undefined`: the entries that concern no application. */
  list(application: ApplicationId | undefined, filter: AuditFilter): Promise<AuditRow[]>;
  /** Removes what is older than 400 days, as far as it is sealed. Returns how many rows that were. */
  forget(batch: number): Promise<number>;
  /** Every chain that has entries or seals: applications, and the nil id for entries of none. */
  chains(): Promise<string[]>;
  /** Those with entries that no seal covers. */
  unsealed(): Promise<string[]>;
  /** Entries with a greater number, oldest first. */
  entriesAfter(chain: string, number: number, limit: number): Promise<AuditRow[]>;
  /** Seals with a greater number, oldest first. */
  sealsAfter(chain: string, number: number, limit: number): Promise<SealRow[]>;
  lastSeal(chain: string): Promise<SealRow | undefined>;
  /** Nothing is added if another process was first. */
  insertSeal(row: SealRow): Promise<boolean>;
}
