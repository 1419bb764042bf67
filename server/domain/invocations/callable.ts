// The operations that agents can call, and which of them a key has a grant for.

import { ANY_OPERATION } from '../../../contract/grants.ts';
import type { OperationEffect } from '../../../contract/invocations.ts';
import {
  MANAGED_OPERATIONS,
  type ManagedOperation,
  type ManagedOperationId,
  plainSchema,
} from '../../../contract/managed-operations.ts';
import type { GrantRow } from '../../engines/store/rows/credentials.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import type { JsonObject } from '../../kit/json.ts';

export interface CallableOperation {
  readonly id: ManagedOperationId;
  readonly title: string;
  readonly description: string;
  readonly revision: number;
  /** Digest of the definition, which receipts name. */
  readonly digest: string;
  readonly effect: OperationEffect;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
  readonly timeoutMs: number;
}

export interface Granted {
  readonly operation: CallableOperation;
  readonly grant: GrantRow;
}

/** Ordered by id. */
export const CALLABLE: readonly CallableOperation[] = Object.entries<ManagedOperation>(MANAGED_OPERATIONS)
  .map(([id, managed]) => callable(id as ManagedOperationId, managed)) // TypeScript widens the keys
  .sort((a, b) => (a.id < b.id ? -1 : 1));

function callable(
  id: ManagedOperationId,
  { input, output, example: _, ...managed }: ManagedOperation,
): CallableOperation {
  const definition = {
    ...{ id, kind: 'managed', ...managed },
    ...{ inputSchema: plainSchema(input) as JsonObject, outputSchema: plainSchema(output) as JsonObject },
  };
  const { kind: __, ...operation } = definition;
  return { ...operation, digest: digestOf(definition) };
}

/** The operations that these grants allow. A grant that names an operation precedes one for every operation. */
export const grantedBy = (grants: readonly GrantRow[]): readonly Granted[] =>
  CALLABLE.flatMap(operation => {
    const grant = grantFor(grants, operation);
    return grant ? [{ operation, grant }] : [];
  });

function grantFor(grants: readonly GrantRow[], { id, revision, effect }: CallableOperation): GrantRow | undefined {
  const allows = (grant: GrantRow): boolean =>
    (grant.revision === undefined || grant.revision === revision) &&
    (grant.effect === undefined || grant.effect === effect);
  return (
    grants.find(grant => grant.operationId === id && allows(grant)) ??
    grants.find(grant => grant.operationId === ANY_OPERATION && allows(grant))
  );
}
