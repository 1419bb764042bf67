// The columns of the list of sessions. Which are hidden is remembered in this browser.
import { useSyncExternalStore } from 'react';

/** In order, with their tracks in the grid. The first two are always shown. */
export const COLUMNS = {
  status: { name: 'Status', track: '92px' },
  page: { name: 'Session', track: 'minmax(0,1fr)' },
  endReason: { name: 'End reason', track: 'minmax(112px,0.4fr)' },
  created: { name: 'Created', track: '84px' },
  duration: { name: 'Duration', track: '64px' },
} as const;
export type Column = keyof typeof COLUMNS;

export const OPTIONAL = ['endReason', 'created', 'duration'] as const satisfies readonly Column[];
export type OptionalColumn = (typeof OPTIONAL)[number];

const STORED = 'berth.hidden-columns';
const listeners = new Set<() => void>();

export function useHiddenColumns(): ReadonlySet<OptionalColumn> {
  const text = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => localStorage.getItem(STORED) ?? '',
  );
  const names = text.split(' ');
  return new Set(OPTIONAL.filter(column => names.includes(column)));
}

export function hideColumns(hidden: ReadonlySet<OptionalColumn>): void {
  if (hidden.size === 0) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, [...hidden].join(' '));
  for (const listener of listeners) listener();
}

/** The tracks of the grid, with those of the checkbox and the picture first. */
export const tracksOf = (columns: readonly Column[]): string =>
  ['92px', ...columns.map(column => COLUMNS[column].track)].join(' ');
