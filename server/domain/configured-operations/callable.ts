// The operations that agents can call: built-in operations with their overlays, and the published operations of an
// application. Also determines for which of these operations a key has a grant.
import type { OperationApproval } from '../../../contract/configured-operations.ts';
import { ANY_OPERATION } from '../../../contract/grants.ts';
import { OPERATION_ID_OPTIONS, type OperationEffect } from '../../../contract/invocations.ts';
import type { ManagedOperation } from '../../../contract/managed-operation.ts';
import {
  MANAGED_OPERATIONS,
  MANAGED_PRICE_MICRO_CREDITS,
  type ManagedOperationId,
  plainSchema,
} from '../../../contract/managed-operations.ts';
import type { ConfiguredOperationRows, OperationRevisionRow } from '../../engines/store/rows/configured-operations.ts';
import type { GrantRow } from '../../engines/store/rows/credentials.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import {
  type BrowserDefinition,
  type HttpDefinition,
  isBrowserBinding,
  type OperationDefinition,
  type OverlayDefinition,
} from './definition.ts';

interface Callable {
  readonly title: string;
  readonly description: string;
  readonly revision: number;
  /** Digest of the definition. Receipts contain this digest. */
  readonly digest: string;
  readonly effect: OperationEffect;
  readonly approval: OperationApproval;
  readonly price: { readonly microCredits: number };
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
  readonly timeoutMs: number;
}

export interface ManagedCallable extends Callable {
  readonly kind: 'managed';
  readonly id: ManagedOperationId;
}

export interface HttpCallable extends Callable {
  readonly kind: 'http';
  readonly id: string;
  readonly definition: HttpDefinition;
}

export interface BrowserCallable extends Callable {
  readonly kind: 'browser';
  readonly id: string;
  readonly definition: BrowserDefinition;
}

export type OwnCallable = HttpCallable | BrowserCallable;
export type CallableOperation = ManagedCallable | OwnCallable;

export interface GrantedOperation {
  readonly operation: CallableOperation;
  readonly grant: GrantRow;
}

/** The built-in operations without overlays, ordered by id. */
export const BUILT_IN_OPERATIONS: readonly ManagedCallable[] = Object.entries<ManagedOperation>(MANAGED_OPERATIONS)
  .map(([id, managed]) => builtInCallable(id as ManagedOperationId, managed)) // `Object.entries` types keys as string.
  .sort((a, b) => (a.id < b.id ? -1 : 1));

function builtInCallable(
  id: ManagedOperationId,
  { input, output, example: _, ...managed }: ManagedOperation,
): ManagedCallable {
  const definition = {
    ...{ id, kind: 'managed', ...managed },
    ...{ inputSchema: plainSchema(input) as JsonObject, outputSchema: plainSchema(output) as JsonObject },
  };
  const fixedFields = {
    kind: 'managed',
    approval: 'none',
    price: { microCredits: MANAGED_PRICE_MICRO_CREDITS },
  } as const;
  return { ...definition, ...fixedFields, digest: digestOf(definition) };
}

export const findBuiltIn = (id: string): ManagedCallable | undefined => BUILT_IN_OPERATIONS.find(one => one.id === id);

const ID_PATTERN = new RegExp(OPERATION_ID_OPTIONS.pattern);

export const isOperationId = (text: string): boolean =>
  text.length <= OPERATION_ID_OPTIONS.maxLength && ID_PATTERN.test(text);

export class Catalogue {
  readonly #rows: Pick<ConfiguredOperationRows, 'listPublished' | 'revision'>;

  constructor(rows: Pick<ConfiguredOperationRows, 'listPublished' | 'revision'>) {
    this.#rows = rows;
  }

  /** Returns the operations that agents of the application can call if they have a grant. Ordered by id. */
  async all(application: ApplicationId): Promise<readonly CallableOperation[]> {
    const rows = await this.#rows.listPublished(application);
    const overlays = new Map(rows.filter(({ kind }) => kind === 'managed').map(({ id, content }) => [id, content]));
    const enabledBuiltIns = BUILT_IN_OPERATIONS.flatMap(operation =>
      withOverlay(operation, overlays.get(operation.id)?.definition),
    );
    const ownOperations = rows
      .filter(({ kind }) => kind !== 'managed')
      .map(row => ownCallable(row.id, { ...row.content, revision: row.publishedRevision ?? row.revision }));
    return [...enabledBuiltIns, ...ownOperations].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async findById(application: ApplicationId, id: string): Promise<CallableOperation | undefined> {
    if (!isOperationId(id)) return undefined;
    const [row] = await this.#rows.listPublished(application, id);
    const operation = findBuiltIn(id);
    if (operation) return withOverlay(operation, row?.content.definition)[0];
    return row && ownCallable(id, { ...row.content, revision: row.publishedRevision ?? row.revision });
  }

  /** Returns the revision that an accepted invocation names, even if the operation has changed since. */
  async findRevision(application: ApplicationId, id: string, revision: number): Promise<CallableOperation | undefined> {
    const operation = findBuiltIn(id);
    if (operation) return operation.revision === revision ? operation : undefined;
    const row = await this.#rows.revision(application, id, revision);
    return row && ownCallable(id, row);
  }
}

/**
 * Returns a list that contains the operation with its overlay applied. The list is empty if the operation is switched
 * off.
 */
function withOverlay(operation: ManagedCallable, definition: JsonObject | undefined): readonly ManagedCallable[] {
  if (!definition) return [operation];
  const { enabled, approval, price } = overlayIn(definition);
  return enabled ? [{ ...operation, approval, price }] : [];
}

function ownCallable(
  id: string,
  { revision, digest, definition: storedDefinition }: Pick<OperationRevisionRow, 'revision' | 'digest' | 'definition'>,
): OwnCallable {
  const definition = definitionIn(storedDefinition);
  const { title, description, effect, approval, price, inputSchema, outputSchema = {}, timeoutMs } = definition;
  const commonFields = { title, description, effect, approval, price, inputSchema, outputSchema, timeoutMs };
  const callableFields = { id, revision, digest, ...commonFields };
  const { binding } = definition;
  return isBrowserBinding(binding)
    ? { kind: 'browser', ...callableFields, definition: { ...definition, binding } }
    : { kind: 'http', ...callableFields, definition: { ...definition, binding } };
}

/** Reads a stored definition, which definition.ts created. */
export const definitionIn = (stored: JsonObject) => stored as unknown as OperationDefinition;
/** Reads a stored overlay, which definition.ts created. */
export const overlayIn = (stored: JsonObject) => stored as unknown as OverlayDefinition;

/** Returns the operations that the grants allow. */
export const grantedOperationsOf = (
  operations: readonly CallableOperation[],
  grants: readonly GrantRow[],
): readonly GrantedOperation[] =>
  operations.flatMap(operation => {
    const grant = grantFor(grants, operation);
    return grant ? [{ operation, grant }] : [];
  });

/**
 * Returns the grant for the operation. A grant that names the operation takes precedence over a grant for every
 * operation.
 */
export function grantFor(
  grants: readonly GrantRow[],
  { id, revision, effect }: CallableOperation,
): GrantRow | undefined {
  const allows = (grant: GrantRow): boolean =>
    (grant.revision === undefined || grant.revision === revision) &&
    (grant.effect === undefined || grant.effect === effect);
  return (
    grants.find(grant => grant.operationId === id && allows(grant)) ??
    grants.find(grant => grant.operationId === ANY_OPERATION && allows(grant))
  );
}
