// The filters above the list of sessions. They are part of the address, so that a link can lead to a filtered list.
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { keysQuery } from '../api/queries.ts';
import { Choice } from '../ui/choice.tsx';
import { END_REASON_WORDS } from '../ui/end-reasons.ts';
import { Icon } from '../ui/icon.tsx';
import { useShortcut } from '../ui/use-shortcut.ts';
import { ColumnMenu } from './column-menu.tsx';
import {
  DURATION_FILTERS,
  type Filters,
  isSessionId,
  readFilters,
  SINCE_FILTERS,
  STATUS_GROUPS,
} from './session-filters.ts';

export function FilterBar({ app, filters }: { readonly app: string; readonly filters: Filters }) {
  const { show = 'all', find = '' } = filters;
  const [text, setText] = useState(find);
  const searchInput = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  const [needsKeys, setNeedsKeys] = useState(filters.key !== undefined);
  const { data: keys } = useQuery({ ...keysQuery(app), enabled: needsKeys });
  useEffect(() => setText(find), [find]);
  useShortcut('/', () => searchInput.current?.focus());
  const apply = (change: Readonly<Record<string, string>>): void => {
    const search = readFilters({ ...filters, ...change });
    void navigate({ to: '/a/$app/sessions', params: { app }, search, replace: true });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isSessionId(text))
      return void navigate({ to: '/a/$app/sessions/$id', params: { app, id: text.trim().toLowerCase() } });
    if (text.trim() !== find) apply({ find: text.trim() });
  };
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2">
      <fieldset className="flex rounded-md border border-line-strong bg-raised p-0.5">
        <legend className="sr-only">Which sessions</legend>
        {Object.entries(STATUS_GROUPS).map(([group, { name }]) => (
          <button
            key={group}
            type="button"
            aria-pressed={group === show}
            onClick={() => apply({ show: group })}
            className="h-8 rounded-[5px] px-2.5 text-sm text-soft transition-colors hover:text-ink aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent md:h-6.5"
          >
            {name}
          </button>
        ))}
      </fieldset>
      <search className="relative min-w-52 grow basis-52">
        <form onSubmit={submit}>
          <span className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-faint">
            <Icon name="search" size={16} />
          </span>
          <input
            ref={searchInput}
            type="search"
            aria-label="Search sessions"
            aria-keyshortcuts="/"
            placeholder="Search"
            value={text}
            onChange={event => setText(event.target.value)}
            onBlur={submit}
            className="h-10 w-full rounded-md border border-line-strong bg-raised pr-2.5 pl-8 text-sm md:h-8"
          />
        </form>
      </search>
      <Choice label="Created" value={filters.since} choose={since => apply({ since })} any="Any time">
        {Object.entries(SINCE_FILTERS).map(([since, { name }]) => (
          <option key={since} value={since}>
            {name}
          </option>
        ))}
      </Choice>
      <Choice label="End reason" value={filters.reason} choose={reason => apply({ reason })} any="Any end reason">
        {Object.entries(END_REASON_WORDS).map(([reason, words]) => (
          <option key={reason} value={reason}>
            {words}
          </option>
        ))}
      </Choice>
      <Choice label="Duration" value={filters.lasted} choose={lasted => apply({ lasted })} any="Any duration">
        {Object.entries(DURATION_FILTERS).map(([lasted, { name }]) => (
          <option key={lasted} value={lasted}>
            {name}
          </option>
        ))}
      </Choice>
      <Choice
        label="Agent key"
        value={filters.key}
        choose={key => apply({ key })}
        any="Any agent key"
        onPointerOrFocus={() => setNeedsKeys(true)}
      >
        {(keys ?? []).map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Choice>
      <ColumnMenu />
    </div>
  );
}
