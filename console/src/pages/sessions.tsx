// The list of sessions, with search and filters, updated live.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../api/api-error.ts';
import { callWithHeaders } from '../api/call.ts';
import { useLiveList } from '../api/use-live-list.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { LiveMark } from '../ui/live-mark.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { isOpen } from '../ui/status.tsx';
import { SelectedSessions } from './selected-sessions.tsx';
import { FilterBar } from './session-filter-bar.tsx';
import { type Filters, listQuery } from './session-filters.ts';
import { SessionTable } from './session-table.tsx';

export { readFilters } from './session-filters.ts';

const FIRST_PAGE = 100;
const PAGE = 1_000;

export function SessionsPage({ app, filters }: { readonly app: string; readonly filters: Filters }) {
  const stream = useLiveList(app);
  const list = useInfiniteQuery({
    queryKey: ['sessions', app, filters],
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const query = {
        ...{ limit: pageParam ? PAGE : FIRST_PAGE, ...listQuery(filters, Date.now()) },
        ...(pageParam ? { before: pageParam } : {}),
      };
      const { body, headers } = await callWithHeaders('listSessions', { app, query, signal });
      return { sessions: body, next: headers.get('x-next-before') ?? undefined };
    },
    getNextPageParam: last => last.next,
  });
  const sessions = list.data?.pages.flatMap(page => page.sessions) ?? [];
  const loadMore = (): void => {
    if (list.hasNextPage && !list.isFetchingNextPage && !list.isFetchNextPageError) void list.fetchNextPage();
  };
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const selected = sessions.filter(session => isOpen(session) && chosen.has(session.id)).map(({ id }) => id);
  const change = (ids: readonly string[], isSelected: boolean): void =>
    setChosen(
      chosenBefore => new Set([...[...chosenBefore].filter(id => !ids.includes(id)), ...(isSelected ? ids : [])]),
    );
  return (
    <Page
      title="Sessions"
      mark={<LiveMark state={stream} />}
      actions={
        <Link to="/a/$app/sessions/new" params={{ app }} className={buttonClass('primary')}>
          <Icon name="plus" size={16} />
          New session
        </Link>
      }
    >
      <FilterBar app={app} filters={filters} />
      <Panel className="@container">
        {list.isPending ? (
          <Loading what="sessions" rows={8} />
        ) : isUnreadable(list.error) ? (
          <NoSessions app={app} narrowed more={list.error.message} />
        ) : list.error && sessions.length === 0 ? (
          <Failed error={list.error} retry={() => void list.refetch()} />
        ) : sessions.length === 0 ? (
          <NoSessions app={app} narrowed={Object.keys(filters).length > 0} />
        ) : (
          <SessionTable app={app} sessions={sessions} selection={{ ids: chosen, change }} onNearEnd={loadMore} />
        )}
      </Panel>
      {selected.length > 0 && <SelectedSessions app={app} ids={selected} clear={() => setChosen(new Set())} />}
      {list.isFetchNextPageError && (
        <div className="mt-4 text-center">
          <Button onClick={() => void list.fetchNextPage()}>Older sessions</Button>
        </div>
      )}
    </Page>
  );
}

const isUnreadable = (error: unknown): error is ApiError => error instanceof ApiError && error.code === 'invalid_query';

const NoSessions = ({
  app,
  narrowed,
  more = 'The search looks for words in ids, titles, addresses, metadata and end reasons. A pair such as run=r-1842 must match exactly.',
}: {
  readonly app: string;
  readonly narrowed: boolean;
  readonly more?: string;
}) =>
  narrowed ? (
    <Empty
      icon="search"
      title="No matching sessions"
      action={
        <Link to="/a/$app/sessions" params={{ app }} className={buttonClass('plain')}>
          Show all
        </Link>
      }
    >
      {more}
    </Empty>
  ) : (
    <Empty
      icon="sessions"
      title="No sessions yet"
      action={
        <Link to="/a/$app/sessions/new" params={{ app }} className={buttonClass('primary')}>
          New session
        </Link>
      }
    >
      A session is one browser that a program uses until it is done. Create the first one here, or from your code.
    </Empty>
  );
