// The history of the inbox. It merges two lists, each of which is read one list page at a time.
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';

export type HistoryEntry =
  | { readonly kind: 'approval'; readonly id: string; readonly createdAt: string; readonly action: ApplicationAction }
  | { readonly kind: 'handoff'; readonly id: string; readonly createdAt: string; readonly handoff: Handoff };

/** The entries of a list that have been read so far, newest first, and whether there are more. */
export interface LoadedList<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/**
 * Returns the entries that have ended, newest first. If one list is not fully loaded, entries that are older than its
 * last loaded entry are left out, because entries of that list may belong between them.
 */
export function historyOf(
  actions: LoadedList<ApplicationAction>,
  handoffs: LoadedList<Handoff>,
): readonly HistoryEntry[] {
  const completeSince = [actions, handoffs].reduce((latest, { items, hasMore }) => {
    const oldest = items.at(-1)?.createdAt ?? '';
    return hasMore && oldest > latest ? oldest : latest;
  }, '');
  const entries: HistoryEntry[] = [
    ...actions.items
      .filter(({ status }) => status !== 'awaiting_approval')
      .map(action => ({ kind: 'approval' as const, id: action.jobId, createdAt: action.createdAt, action })),
    // Hand-offs that viewers started by taking over in the live view are left out: nobody requested them.
    ...handoffs.items
      .filter(({ endedAt, origin }) => endedAt !== undefined && origin !== 'viewer')
      .map(handoff => ({ kind: 'handoff' as const, id: handoff.id, createdAt: handoff.createdAt, handoff })),
  ];
  return entries
    .filter(({ createdAt }) => createdAt >= completeSince)
    .toSorted((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
}
