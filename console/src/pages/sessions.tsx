// The list of sessions, with filters for status and metadata, updated live.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { callFully } from '../api/call.ts';
import { useLiveList } from '../api/use-live-list.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { LiveMark } from '../ui/live-mark.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { type Filters, isSessionId, metadataQuery, STATUS_GROUPS, type StatusGroup } from './session-filters.ts';
import { SessionTable } from './session-table.tsx';

export { readFilters } from './session-filters.ts';

const PAGE = 100;

export function SessionsPage({ app, filters }: { readonly app: string; readonly filters: Filters }) {
  const { show = 'all', find = '' } = filters;
  const stream = useLiveList(app);
  const list = useInfiniteQuery({
    queryKey: ['sessions', app, show, find],
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const status = STATUS_GROUPS[show].statuses.join(',');
      const q = metadataQuery(find);
      const query = {
        limit: PAGE,
        ...(status ? { status } : {}),
        ...(q ? { q } : {}),
        ...(pageParam ? { before: pageParam } : {}),
      };
      const { body, headers } = await callFully('listSessions', { app, query, signal });
      return { sessions: body, next: headers.get('x-next-before') ?? undefined };
    },
    getNextPageParam: last => last.next,
  });
  const sessions = list.data?.pages.flatMap(page => page.sessions) ?? [];
  const narrowed = show !== 'all' || find !== '';
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
      <FilterBar key={`${show} ${find}`} app={app} show={show} find={find} />
      <Panel>
        {list.isPending ? (
          <Loading what="sessions" rows={8} />
        ) : list.error && sessions.length === 0 ? (
          <Failed error={list.error} retry={() => void list.refetch()} />
        ) : sessions.length === 0 ? (
          <NoSessions app={app} narrowed={narrowed} />
        ) : (
          <SessionTable app={app} sessions={sessions} />
        )}
      </Panel>
      {list.hasNextPage && (
        <div className="mt-4 text-center">
          <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Older sessions
          </Button>
        </div>
      )}
    </Page>
  );
}

function FilterBar({ app, show, find }: { readonly app: string; readonly show: StatusGroup; readonly find: string }) {
  const [text, setText] = useState(find);
  const navigate = useNavigate();
  const apply = (next: Filters): void =>
    void navigate({ to: '/a/$app/sessions', params: { app }, search: next, replace: true });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isSessionId(text))
      return void navigate({ to: '/a/$app/sessions/$id', params: { app, id: text.trim().toLowerCase() } });
    apply({ ...(show === 'all' ? {} : { show }), ...(text.trim() ? { find: text.trim() } : {}) });
  };
  return (
    <div className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2">
      <fieldset className="flex rounded-md border border-line-strong bg-raised p-0.5">
        <legend className="sr-only">Which sessions</legend>
        {Object.entries(STATUS_GROUPS).map(([group, { name }]) => (
          <button
            key={group}
            type="button"
            aria-pressed={group === show}
            onClick={() =>
              apply({ ...(group === 'all' ? {} : { show: group as StatusGroup }), ...(find ? { find } : {}) })
            }
            className="h-8 rounded-[5px] px-2.5 text-sm text-soft transition-colors hover:text-ink aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent md:h-6.5"
          >
            {name}
          </button>
        ))}
      </fieldset>
      <search className="relative min-w-0 grow md:max-w-[380px]">
        <form onSubmit={submit}>
          <span className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-faint">
            <Icon name="search" size={16} />
          </span>
          <input
            type="search"
            aria-label="Session id, or metadata"
            placeholder="Session id, or metadata: run=r-1842"
            value={text}
            onChange={event => setText(event.target.value)}
            onBlur={submit}
            className="h-10 w-full rounded-md border border-line-strong bg-raised pr-2.5 pl-8 text-sm md:h-8"
          />
        </form>
      </search>
    </div>
  );
}

const NoSessions = ({ app, narrowed }: { readonly app: string; readonly narrowed: boolean }) =>
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
      Metadata must match exactly, including case. Only text values can be searched.
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
      A session is one browser, lent to a program until it is done. Create the first one here, or from your code.
    </Empty>
  );
