// The filters above the log of a session: the search words, the page, and a choice that depends on the tab.
import type { ReactNode } from 'react';
import { Choice } from '../ui/choice.tsx';

export function LogFilters({
  label,
  find,
  setFind,
  page,
  setPage,
  pages,
  count,
  children,
}: {
  /** Accessible name of the search field. */
  readonly label: string;
  readonly find: string;
  readonly setFind: (text: string) => void;
  readonly page: string;
  readonly setPage: (page: string) => void;
  /** The pages of the log, with their names. */
  readonly pages: ReadonlyMap<number, string>;
  /** The number of rows that are shown, in words. */
  readonly count: string;
  readonly children: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
      <input
        type="search"
        aria-label={label}
        placeholder="Filter"
        value={find}
        onChange={event => setFind(event.target.value)}
        className="h-10 w-full max-w-56 rounded-md border border-line-strong bg-raised px-2.5 text-sm md:h-8"
      />
      {pages.size > 1 && (
        <Choice label="Page" value={page} choose={setPage} any="All pages">
          {[...pages].map(([number, name]) => (
            <option key={number} value={number}>
              {number}: {name}
            </option>
          ))}
        </Choice>
      )}
      {children}
      <span role="status" className="ml-auto text-xs text-soft">
        {count}
      </span>
    </div>
  );
}
