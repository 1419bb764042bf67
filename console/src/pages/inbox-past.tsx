// Past items of the inbox (decided, completed, canceled or expired), each with the person, the time and the receipt.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';
import { actionsQuery, handoffsQuery } from '../api/queries.ts';
import { HANDOFF_REASON_WORDS } from '../people/handoff-words.ts';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { type HistoryEntry, historyOf, type LoadedList } from './inbox-history.ts';
import { LINK, SessionLink } from './inbox-items.tsx';
import { APPROVAL_MARKS, HANDOFF_MARKS } from './inbox-words.ts';

export type NamesById = ReadonlyMap<string, string>;

export function InboxPast({ app, people }: { readonly app: string; readonly people: NamesById }) {
  const actions = useInfiniteQuery(actionsQuery(app));
  const handoffs = useInfiniteQuery(handoffsQuery(app));
  const entries =
    actions.data && handoffs.data
      ? historyOf(
          toLoadedList(actions.data.pages, actions.hasNextPage),
          toLoadedList(handoffs.data.pages, handoffs.hasNextPage),
        )
      : undefined;
  const list = {
    hasNextPage: actions.hasNextPage || handoffs.hasNextPage,
    isFetchingNextPage: actions.isFetchingNextPage || handoffs.isFetchingNextPage,
    fetchNextPage: () =>
      Promise.all([actions.hasNextPage && actions.fetchNextPage(), handoffs.hasNextPage && handoffs.fetchNextPage()]),
  };
  return (
    <section aria-labelledby="history">
      <h2 id="history" className="mb-3 text-base font-semibold">
        History
      </h2>
      <ListPanel
        contentLabel="past decisions"
        items={entries}
        error={actions.error ?? handoffs.error}
        retry={() => Promise.all([actions.refetch(), handoffs.refetch()])}
        empty={
          <EmptyState icon="inbox" title="Nothing has been decided yet">
            What people approved, refused or did for agents is listed here for 90 days.
          </EmptyState>
        }
      >
        {entry => <Entry key={entry.id} app={app} entry={entry} people={people} />}
      </ListPanel>
      <LoadMore list={list} buttonText="Show older entries" />
    </section>
  );
}

const toLoadedList = <Item,>(
  pages: ReadonlyArray<{ readonly data: readonly Item[] }>,
  hasMore: boolean,
): LoadedList<Item> => ({
  items: pages.flatMap(({ data }) => data),
  hasMore,
});

const Entry = ({
  app,
  entry,
  people,
}: {
  readonly app: string;
  readonly entry: HistoryEntry;
  readonly people: NamesById;
}) =>
  entry.kind === 'approval' ? (
    <PastApproval app={app} action={entry.action} people={people} />
  ) : (
    <PastHandoff app={app} handoff={entry.handoff} people={people} />
  );

const Row = ({
  title,
  about,
  mark,
  by,
  time,
}: {
  readonly title: string;
  readonly about: ReactNode;
  readonly mark: { readonly word: string; readonly dot: string; readonly ink: string };
  readonly by: ReactNode;
  readonly time: string;
}) => (
  <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-6 gap-y-1 px-4 py-2.5 text-sm @min-[720px]:grid-cols-[minmax(0,1.5fr)_minmax(0,0.9fr)_minmax(0,1fr)_76px] @min-[720px]:items-center">
    <div className="min-w-0">
      <p className="font-medium break-words">{title}</p>
      <p className="text-xs break-words text-soft">{about}</p>
    </div>
    <span
      className={`inline-flex items-center justify-end gap-2 self-start font-medium @min-[720px]:justify-start @min-[720px]:self-auto ${mark.ink}`}
    >
      <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${mark.dot}`} />
      {mark.word}
    </span>
    <p className="min-w-0 break-words text-soft">{by}</p>
    <p className="text-right text-xs text-soft">
      <Ago time={time} />
    </p>
  </li>
);

function PastApproval({
  app,
  action,
  people,
}: {
  readonly app: string;
  readonly action: ApplicationAction;
  readonly people: NamesById;
}) {
  const { status, decision, asksFor, operationTitle, agent, invocationId, why, endedAt, createdAt, expiresAt } = action;
  const endTime = status === 'expired' ? expiresAt : endedAt;
  return (
    <Row
      title={asksFor?.summary ?? operationTitle}
      about={
        <>
          Asked by {agent.name}
          {invocationId !== undefined && (
            <>
              .{' '}
              <Link to="/a/$app/invocations/$id" params={{ app, id: invocationId }} className={LINK}>
                Receipt
              </Link>
            </>
          )}
        </>
      }
      mark={APPROVAL_MARKS[status]}
      by={
        decision ? decidedByText(decision, people) : why === undefined ? 'Nobody decided' : (REASON_TEXTS[why] ?? why)
      }
      time={decision?.at ?? endTime ?? createdAt}
    />
  );
}

const REASON_TEXTS: Readonly<Record<string, string>> = {
  caller: 'by the agent',
  withdrawn: 'the operation was withdrawn',
};

function decidedByText({ by, method }: NonNullable<ApplicationAction['decision']>, people: NamesById): string {
  const decider = by.kind === 'end_user' ? 'an end user' : (people.get(by.id) ?? 'a former member');
  return `by ${decider}${method === 'passkey' ? ', signed with a passkey' : ''}`;
}

const PastHandoff = ({
  app,
  handoff,
  people,
}: {
  readonly app: string;
  readonly handoff: Handoff;
  readonly people: NamesById;
}) => (
  <Row
    title={HANDOFF_REASON_WORDS[handoff.reason]}
    about={
      <>
        Control of <SessionLink app={app} id={handoff.sessionId} />
      </>
    }
    mark={HANDOFF_MARKS[handoff.status]}
    by={helpedByText(handoff, people)}
    time={handoff.endedAt ?? handoff.createdAt}
  />
);

function helpedByText({ holder, status }: Handoff, people: NamesById): string {
  if (!holder) return status === 'cancelled' ? 'before anyone took control' : 'Nobody took control';
  if (holder.kind === 'account') return `by ${people.get(holder.id ?? '') ?? 'a former member'}`;
  return holder.kind === 'consumer' ? 'by an end user' : 'by someone with the link';
}
