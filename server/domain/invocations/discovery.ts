// Decides whether an operation matches the filters of a caller. Pure.
import type { DiscoveryQuery } from '../../../contract/discovery.ts';
import type { CallableOperation } from '../configured-operations/callable.ts';

export type Filters = Pick<DiscoveryQuery, 'q' | 'kind' | 'effect'>;

/** Whether each word of `q` is in the id, the title or the description, and the other filters match. */
export function matchesFilters(
  { id, title, description, kind, effect }: Pick<CallableOperation, 'id' | 'title' | 'description' | 'kind' | 'effect'>,
  filters: Filters,
): boolean {
  const searchedText = `${id}\n${title}\n${description}`.toLowerCase();
  const words = (filters.q ?? '').toLowerCase().split(/\s+/);
  return (
    (filters.kind === undefined || filters.kind === kind) &&
    (filters.effect === undefined || filters.effect === effect) &&
    words.every(word => searchedText.includes(word))
  );
}
