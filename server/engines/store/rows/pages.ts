// The pages that a session has had.
import type { ApplicationId, SessionId } from '../../../kit/ids.ts';

/** A page of a session under the number that it has for ever. */
export interface PageRow {
  readonly number: number;
  /** What the browser calls it. */
  readonly targetId: string;
  readonly appearedAt: Date;
}

export interface PageRows {
  /** By number. */
  list(application: ApplicationId, session: SessionId): Promise<readonly PageRow[]>;
  /** What stands stays. */
  add(application: ApplicationId, session: SessionId, pages: readonly PageRow[]): Promise<void>;
}
