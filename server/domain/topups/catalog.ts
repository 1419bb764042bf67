// The public catalog of built-in operations, made from the same definitions as the operations that agents call.
import { MANAGED_PRICE_MICRO_CREDITS } from '../../../contract/managed-operations.ts';
import { isMemoryOperation } from '../../../contract/memory-operations.ts';
import { type Catalog, METERS } from '../../../contract/topups.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import { BUILT_IN_OPERATIONS } from '../configured-operations/callable.ts';

const data: Catalog['data'] = BUILT_IN_OPERATIONS.map(({ id, title, effect, inputSchema }) => ({
  ...({ id, kind: 'operation', title, effect, inputSchema } as const),
  ...{ meters: isMemoryOperation(id) ? [] : [...METERS], price: { microCredits: MANAGED_PRICE_MICRO_CREDITS } },
}));

/** The same for every caller, and unchanged until the program is upgraded. */
export const CATALOG: Catalog = { data, digest: digestOf(data) };
