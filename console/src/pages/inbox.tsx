// The inbox of an application: what is waiting for a person, and the outcome of earlier items.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';
import { isPerson } from '../api/credentials.ts';
import { useInbox } from '../api/live-inbox.ts';
import { accountQuery, keysQuery, membersQuery, waitingQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { ApprovalCard, ApprovalLine, HandoffCard, HandoffLine, LINK } from './inbox-items.tsx';
import { InboxPast, type NamesById } from './inbox-past.tsx';

type Item =
  | { readonly kind: 'approval'; readonly id: string; readonly until: string; readonly action: ApplicationAction }
  | { readonly kind: 'handoff'; readonly id: string; readonly until: string; readonly handoff: Handoff };

export function InboxPage({ app }: { readonly app: string }) {
  const memberNames = useMemberNames(app);
  return (
    <Page
      title="Inbox"
      about={
        <>
          Requests from agents: to approve something, or to help in a browser.{' '}
          <a href="/docs/approvals" className="text-accent underline">
            How approvals work
          </a>
        </>
      }
    >
      <div className="grid gap-8">
        <OtherInboxes app={app} />
        <WaitingItems app={app} people={memberNames} />
        <InboxPast app={app} people={memberNames} />
      </div>
    </Page>
  );
}

/** Other applications in which something is waiting for the user. */
function OtherInboxes({ app }: { readonly app: string }) {
  const otherInboxes = (useInbox()?.applications ?? []).filter(({ applicationId }) => applicationId !== app);
  if (otherInboxes.length === 0) return null;
  return (
    <p className="text-sm">
      Something is waiting for you in{' '}
      {otherInboxes.map(({ applicationId, applicationName, approvals, handoffs }, index) => (
        <span key={applicationId}>
          {index > 0 && ', '}
          <Link to="/a/$app/inbox" params={{ app: applicationId }} className={LINK}>
            {applicationName} ({approvals + handoffs})
          </Link>
        </span>
      ))}
      .
    </p>
  );
}

function WaitingItems({ app, people }: { readonly app: string; readonly people: NamesById }) {
  const { data, error, refetch } = useQuery(waitingQuery(app));
  const { data: account } = useQuery(accountQuery);
  const { data: keys } = useQuery(keysQuery(app));
  const keyNames = new Map(keys?.map(({ id, name }) => [id, name]));
  const mayHelp = isAtLeast(useRole(app), 'developer') && isPerson();
  if (!data)
    return (
      <Panel>
        {error ? (
          <LoadError error={error} retry={() => void refetch()} />
        ) : (
          <LoadingRows contentLabel="the inbox" rows={4} />
        )}
      </Panel>
    );
  const isHolder = ({ status, holder }: Handoff): boolean =>
    status === 'claimed' && holder?.kind === 'account' && holder.id === account?.id;
  const isMine = (item: Item): boolean =>
    item.kind === 'approval'
      ? item.action.mayDecide
      : mayHelp &&
        (isHolder(item.handoff) ||
          (item.handoff.status === 'requested' && item.handoff.claimableBy.includes('members')));
  const items = itemsOf(data);
  const ownItems = items.filter(isMine);
  const othersItems = items.filter(item => !isMine(item));
  return (
    <>
      <section aria-labelledby="waiting">
        <h2 id="waiting" className="mb-3 text-base font-semibold">
          Waiting for you{ownItems.length > 0 && ` (${ownItems.length})`}
        </h2>
        {ownItems.length === 0 ? (
          <Panel>
            <EmptyState icon="inbox" title="Nothing is waiting for you">
              {isPerson()
                ? 'When an agent needs your approval or your help, the request appears here at once, and you get an e-mail.'
                : 'You are signed in with an access token, which cannot make decisions. Sign in with your e-mail address.'}
            </EmptyState>
          </Panel>
        ) : (
          <ul className="grid items-start gap-4 @min-[900px]:grid-cols-2">
            {ownItems.map(item =>
              item.kind === 'approval' ? (
                <ApprovalCard key={item.id} app={app} action={item.action} />
              ) : (
                <HandoffCard
                  key={item.id}
                  app={app}
                  handoff={item.handoff}
                  agentName={keyNames.get(item.handoff.requestedBy.id ?? '')}
                  isViewerInControl={isHolder(item.handoff)}
                />
              ),
            )}
          </ul>
        )}
      </section>
      {othersItems.length > 0 && (
        <section aria-labelledby="others">
          <h2 id="others" className="mb-3 text-base font-semibold">
            Waiting for others ({othersItems.length})
          </h2>
          <ListPanel
            contentLabel="requests waiting for others"
            items={othersItems}
            error={null}
            retry={refetch}
            empty={null}
          >
            {item =>
              item.kind === 'approval' ? (
                <ApprovalLine key={item.id} action={item.action} />
              ) : (
                <HandoffLine
                  key={item.id}
                  app={app}
                  handoff={item.handoff}
                  holder={people.get(item.handoff.holder?.id ?? '')}
                />
              )
            }
          </ListPanel>
        </section>
      )}
    </>
  );
}

/**
 * Returns the items, sorted by expiry, earliest first. Hand-offs that viewers started themselves by taking over in the
 * live view are left out, because nobody requested them.
 */
function itemsOf({
  actions,
  handoffs,
}: {
  readonly actions: readonly ApplicationAction[];
  readonly handoffs: readonly Handoff[];
}): readonly Item[] {
  const items: Item[] = [
    ...actions.map(action => ({ kind: 'approval' as const, id: action.jobId, until: action.expiresAt, action })),
    ...handoffs
      .filter(({ origin }) => origin !== 'viewer')
      .map(handoff => ({ kind: 'handoff' as const, id: handoff.id, until: handoff.expiresAt, handoff })),
  ];
  return items.toSorted((one, other) => (one.until < other.until ? -1 : 1));
}

function useMemberNames(app: string): NamesById {
  const { data } = useInfiniteQuery(membersQuery(app));
  const members = data?.pages.flatMap(page => page.data) ?? [];
  return new Map(members.map(({ accountId, name }) => [accountId, name]));
}
