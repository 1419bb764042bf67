// The audit log: entries are added and read, never changed.
import type { AccountId, ApplicationId, AuditId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface NamedObject {
  readonly kind: string;
  readonly id: string;
}

export interface NewAuditRow {
  readonly id: AuditId;
  /** Absent: the entry concerns no application. */
  readonly applicationId?: ApplicationId;
  readonly accountId?: AccountId;
  readonly at: Date;
  readonly action: string;
  /** Who performed the action. If an account has no name here, its name is looked up. */
  readonly actor: {
    readonly kind: 'account' | 'agent_key' | 'consumer' | 'operator' | 'anonymous' | 'service';
    readonly id?: string;
    readonly name?: string;
  };
  readonly via?: NamedObject;
  readonly target?: NamedObject;
  readonly outcome: 'success' | 'refused';
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
  readonly details: JsonObject;
}

export interface AuditRow extends NewAuditRow {
  /** Consecutive within the chain. */
  readonly number: number;
}

export interface SealRow {
  readonly chain: string;
  readonly number: number;
  readonly firstNumber: number;
  readonly lastNumber: number;
  /** SHA-256 of each entry that the seal covers. */
  readonly rowDigests: readonly Buffer[];
  readonly jws: string;
  readonly at: Date;
}

export interface AuditFilter {
  readonly limit: number;
  /** Only entries older than this one. */
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
  /** Removes sealed entries that are older than 400 days. Returns the number of rows. */
  forget(batchSize: number): Promise<number>;
  /**
   * The ids of all chains that have entries or seals: one for each application, and the nil id for entries that concern
   * no application.
   */
  chains(): Promise<string[]>;
  /** The chains that have entries without a seal. */
  unsealedChains(): Promise<string[]>;
  /** Entries whose number is greater than `number`, oldest first. */
  entriesAfter(chain: string, number: number, limit: number): Promise<AuditRow[]>;
  /** Seals whose number is greater than `number`, oldest first. */
  sealsAfter(chain: string, number: number, limit: number): Promise<SealRow[]>;
  lastSeal(chain: string): Promise<SealRow | undefined>;
  /** Inserts a seal. If another process has inserted one with this number, inserts nothing and returns false. */
  insertSeal(row: SealRow): Promise<boolean>;
}
