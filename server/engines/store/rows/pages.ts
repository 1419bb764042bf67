// The pages of sessions.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

/** A page of a session and its permanent number. */
export interface PageRow {
  readonly number: number;
  /** The browser's target id. */
  readonly targetId: string;
  readonly appearedAt: Date;
}

export interface PageRows {
  /** Ordered by number. */
  list(application: ApplicationId, session: SessionId): Promise<readonly PageRow[]>;
  /** Existing rows are not changed. */
  add(application: ApplicationId, session: SessionId, pages: readonly PageRow[]): Promise<void>;
}
