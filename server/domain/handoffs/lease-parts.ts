// The dependencies of the lease of a session, and the types of the arguments that its callers pass.
import type { NavigationRule } from '../../engines/browser/navigation-guard.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { Store } from '../../engines/store/store.ts';
import type { ApplicationId, ConsumerSessionId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Audit, AuditSource } from '../audit/audit.ts';
import type { Cover } from '../sessions/live.ts';

export interface LeaseParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'atomically'>;
  readonly events: Pick<EventRows, 'append'>;
  readonly audit: Pick<Audit, 'record'>;
}

/** The session whose control is leased. */
export interface LeasedSession {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  setCover(cover: Cover | undefined): void;
  readonly browser: {
    /** Blocks documents that the rule does not allow, until the returned handle is closed. */
    restrictNavigations(rule: NavigationRule): Promise<Closeable>;
    /** Discards the console messages of pages so far, so that they are not sent to another client. */
    discardConsole(): Promise<void>;
  };
  hold(): { close(): void };
}

/** The person who claims a hand-off, already verified by the caller. */
export interface Claimer {
  readonly kind: 'account' | 'link' | 'consumer';
  readonly id?: string;
  /** For a consumer, the consumer session. The lease ends when the consumer session ends. */
  readonly session?: ConsumerSessionId;
  readonly source: AuditSource;
}

/** The person's report at the end of the hand-off. */
export interface HandoffReport {
  readonly outcome: 'completed' | 'declined' | 'failed';
  readonly note?: string;
  readonly evidence?: JsonObject;
  readonly url?: string;
}

export const BY_SERVICE: AuditSource = { actor: { kind: 'service' } };
