// Operations that applications configure, in revisions. Overlays of built-in operations are rows of the kind `managed`.
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface OperationRow {
  readonly applicationId: ApplicationId;
  readonly id: string;
  readonly kind: 'managed' | 'http' | 'browser';
  readonly status: 'draft' | 'published' | 'withdrawn' | 'deleted';
  /** The newest revision. */
  readonly revision: number;
  readonly publishedRevision?: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface OperationContent {
  readonly digest: string;
  readonly definition: JsonObject;
  /** The stored credentials that the definition names. */
  readonly credentialIds: readonly string[];
}

export interface OperationRevisionRow extends OperationContent {
  readonly applicationId: ApplicationId;
  readonly operationId: string;
  readonly revision: number;
  readonly createdAt: Date;
}

/** An operation with one of its revisions. */
export interface OperationWithContent extends OperationRow {
  readonly content: OperationContent;
}

export interface ConfiguredOperationRows {
  /** Returns an operation with the given revision, by default its newest one. Deleted operations are not found. */
  get(application: ApplicationId, id: string, revision?: number): Promise<OperationWithContent | undefined>;
  /** All operations with their newest revisions, ordered by id. */
  list(application: ApplicationId): Promise<OperationWithContent[]>;
  /** Published operations with the published revisions, ordered by id. `id`: returns only this operation. */
  listPublished(application: ApplicationId, id?: string): Promise<OperationWithContent[]>;
  /** A revision of an operation in any state, for an invocation that names it. */
  revision(application: ApplicationId, id: string, revision: number): Promise<OperationRevisionRow | undefined>;
  /**
   * Inserts an operation with the revision `firstRevision`, or revives a deleted one with its next revision. Undefined
   * if an operation with this id exists. `limit_reached`: there are already `maxOperations` operations. `name_taken`:
   * another operation has the same tool name.
   */
  insert(
    row: Pick<OperationRow, 'applicationId' | 'id' | 'kind' | 'status'>,
    content: OperationContent,
    firstRevision: number,
    maxOperations: number,
    now: Date,
  ): Promise<OperationRow | 'limit_reached' | 'name_taken' | undefined>;
  /**
   * Adds a revision if `revision` is still the newest one. Deletes old revisions, except the last `kept`, the published
   * one, and those that running invocations or open Actions refer to. `publish`: the new revision is published at once.
   */
  change(
    application: ApplicationId,
    id: string,
    revision: number,
    content: OperationContent,
    options: { readonly publish: boolean; readonly kept: number; readonly now: Date },
  ): Promise<OperationRow | undefined>;
  /** Publishes the revision if it is the newest one. */
  publish(application: ApplicationId, id: string, revision: number, now: Date): Promise<OperationRow | undefined>;
  /** published -> withdrawn. */
  withdraw(application: ApplicationId, id: string, now: Date): Promise<OperationRow | undefined>;
  /** Deletes an operation that is not published, if `revision` is the newest one. */
  delete(application: ApplicationId, id: string, revision: number, now: Date): Promise<OperationRow | undefined>;
}
