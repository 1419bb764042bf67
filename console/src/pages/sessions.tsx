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
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { isOpen } from '../ui/status.tsx';
import { SelectedSessions } from './selected-sessions.tsx';
import { FilterBar } from './session-filter-bar.tsx';
import { type Filters, listQuery } from './session-filters.ts';
import { SessionTable } from './session-table.tsx';

export { readFilters } from './session-filters.ts';

const FIRST_PAGE_SIZE = 100;
const PAGE_SIZE = 1_000;

export function SessionsPage({ app, filters }: { readonly app: string; readonly filters: Filters }) {
  const streamState = useLiveList(app);
  const list = useInfiniteQuery({
    queryKey: ['sessions', app, filters],
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const query = {
        ...{ limit: pageParam ? PAGE_SIZE : FIRST_PAGE_SIZE, ...listQuery(filters, Date.now()) },
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
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  const releasableIds = sessions.filter(session => isOpen(session) && selectedIds.has(session.id)).map(({ id }) => id);
  const change = (ids: readonly string[], isSelected: boolean): void =>
    setSelectedIds(
      previousIds => new Set([...[...previousIds].filter(id => !ids.includes(id)), ...(isSelected ? ids : [])]),
    );
  return (
    <Page
      title="Sessions"
      mark={<LiveMark state={streamState} />}
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
          <LoadingRows contentLabel="sessions" rows={8} />
        ) : isInvalidQuery(list.error) ? (
          <NoSessions app={app} hasFilters emptyText={list.error.message} />
        ) : list.error && sessions.length === 0 ? (
          <LoadError error={list.error} retry={() => void list.refetch()} />
        ) : sessions.length === 0 ? (
          <NoSessions app={app} hasFilters={Object.keys(filters).length > 0} />
        ) : (
          <SessionTable app={app} sessions={sessions} selection={{ ids: selectedIds, change }} onNearEnd={loadMore} />
        )}
      </Panel>
      {releasableIds.length > 0 && (
        <SelectedSessions app={app} ids={releasableIds} clear={() => setSelectedIds(new Set())} />
      )}
      {list.isFetchNextPageError && (
        <div className="mt-4 text-center">
          <Button onClick={() => void list.fetchNextPage()}>Older sessions</Button>
        </div>
      )}
    </Page>
  );
}

const isInvalidQuery = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 'invalid_query';

const NoSessions = ({
  app,
  hasFilters,
  emptyText:
    explanation = 'The search looks for words in ids, titles, addresses, metadata and end reasons. A pair such as run=r-1842 must match exactly.',
}: {
  readonly app: string;
  readonly hasFilters: boolean;
  readonly emptyText?: string;
}) =>
  hasFilters ? (
    <EmptyState
      icon="search"
      title="No matching sessions"
      action={
        <Link to="/a/$app/sessions" params={{ app }} className={buttonClass('plain')}>
          Show all
        </Link>
      }
    >
      {explanation}
    </EmptyState>
  ) : (
    <EmptyState
      icon="sessions"
      title="No sessions yet"
      action={
        <Link to="/a/$app/sessions/new" params={{ app }} className={buttonClass('primary')}>
          New session
        </Link>
      }
    >
      A session is one browser that a program uses until it is done. Create the first one here, or from your code.
    </EmptyState>
  );
