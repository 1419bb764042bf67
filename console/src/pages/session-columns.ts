// The columns of the list of sessions. The browser stores which columns are hidden.
import { useSyncExternalStore } from 'react';

/** All columns in the order in which they are shown, with their grid tracks. Optional columns can be hidden. */
export const COLUMNS = {
  status: { name: 'Status', track: '92px', isOptional: false },
  page: { name: 'Session', track: 'minmax(0,1fr)', isOptional: false },
  endReason: { name: 'End reason', track: 'minmax(112px,0.4fr)', isOptional: true },
  created: { name: 'Created', track: '84px', isOptional: true },
  duration: { name: 'Duration', track: '64px', isOptional: true },
} as const;
export type Column = keyof typeof COLUMNS;
export type OptionalColumn = { [C in Column]: (typeof COLUMNS)[C]['isOptional'] extends true ? C : never }[Column];

export const ALL_COLUMNS = Object.keys(COLUMNS) as Column[]; // Object.keys() returns strings.
export const OPTIONAL_COLUMNS = ALL_COLUMNS.filter((column): column is OptionalColumn => COLUMNS[column].isOptional);

const STORAGE_KEY = 'berth.hidden-columns';
const listeners = new Set<() => void>();

export function useHiddenColumns(): ReadonlySet<OptionalColumn> {
  const text = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => localStorage.getItem(STORAGE_KEY) ?? '',
  );
  const names = text.split(' ');
  return new Set(OPTIONAL_COLUMNS.filter(column => names.includes(column)));
}

export function hideColumns(hiddenColumns: ReadonlySet<OptionalColumn>): void {
  if (hiddenColumns.size === 0) localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, [...hiddenColumns].join(' '));
  for (const listener of listeners) listener();
}

/** Returns the tracks of the grid. The first track contains the checkbox and the picture. */
export const tracksOf = (columns: readonly Column[]): string =>
  ['92px', ...columns.map(column => COLUMNS[column].track)].join(' ');
