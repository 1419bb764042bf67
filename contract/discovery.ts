// The filters with which agents look for operations that they may call.
import { type Static, Type } from 'typebox';
import { PageQuery } from './common.ts';
import { OPERATION_KINDS } from './configured-operations.ts';
import { OPERATION_EFFECTS } from './invocations.ts';

/** Number of seconds for which a caller may cache the response for its agent key. */
export const DISCOVERY_CACHE_SECONDS = 30;

export const DiscoveryQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only operations that have each of these words in their id, title or description, ignoring case.',
    }),
  ),
  kind: Type.Optional(Type.Enum([...OPERATION_KINDS], { description: 'Only operations of this kind.' })),
  effect: Type.Optional(Type.Enum([...OPERATION_EFFECTS], { description: 'Only operations with this effect.' })),
  ...PageQuery.properties,
});
export type DiscoveryQuery = Static<typeof DiscoveryQuery>;
