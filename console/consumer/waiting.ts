// Shows what is waiting for the consumer: Actions to decide, and browsers in which an agent needs help. Also shows the
// outcome of earlier items.
import type { ApplicationAction, ApplicationActionPage } from '../../contract/actions.ts';
import type { ConsumerHandoff, ConsumerHandoffPage } from '../../contract/consumer-handoffs.ts';
import { isOpen, REASON_WORDS, STATUS_WORDS } from './handoff-words.ts';
import { build, byId, setTitle, timeOf } from './parts.ts';
import type { Session } from './session.ts';

const RECENT_MAX = 10;
const WAITING_MAX = 50;

const ACTION_STATUS_WORDS: Readonly<Record<string, string>> = {
  approved: 'approved, not done yet',
  executing: 'being done',
  succeeded: 'done',
  failed: 'approved, but failed',
  ambiguous: 'approved, outcome unknown',
  refused: 'refused',
  expired: 'expired',
  cancelled: 'withdrawn',
};

interface Item {
  readonly needsAction: boolean;
  /**
   * The time by which items are sorted. Items that need an action are sorted by their expiry, in ascending order. Other
   * items are sorted by their end, or by their creation if they have not ended, in descending order.
   */
  readonly sortTime: string;
  readonly href: string;
  readonly title: string;
  readonly requesterName: string;
  /** The outcome, in words. */
  readonly outcomeWords: string;
}

export async function showWaiting(session: Session): Promise<void> {
  const [waitingActions, recentActions, handoffs] = await Promise.all([
    session.send<ApplicationActionPage>('actions.list', { status: 'awaiting_approval', limit: WAITING_MAX }),
    session.send<ApplicationActionPage>('actions.list', { limit: RECENT_MAX }),
    session.send<ConsumerHandoffPage>('handoffs.list', { limit: WAITING_MAX }),
  ]);
  const actions = new Map([...waitingActions.data, ...recentActions.data].map(action => [action.jobId, action]));
  const items = [
    ...[...actions.values()].map(action => itemOfAction(session, action)),
    ...handoffs.data.map(handoff => itemOfHandoff(session, handoff)),
  ];
  const openItems = items
    .filter(({ needsAction }) => needsAction)
    .toSorted((one, other) => (one.sortTime < other.sortTime ? -1 : 1));
  const endedItems = items
    .filter(({ needsAction }) => !needsAction)
    .toSorted((one, other) => (one.sortTime > other.sortTime ? -1 : 1));
  setTitle(openItems.length === 0 ? 'Nothing is waiting for you' : 'Waiting for you');
  byId('body').replaceChildren(
    openItems.length === 0
      ? build(
          'p',
          { className: 'soft' },
          `When an agent of ${session.application} needs your approval or your help, the request is listed here.`,
        )
      : build('ul', { className: 'plain' }, ...openItems.map(itemElement)),
    ...(endedItems.length > 0
      ? [
          build('h2', {}, 'Recent'),
          build('ul', { className: 'plain' }, ...endedItems.slice(0, RECENT_MAX).map(itemElement)),
        ]
      : []),
  );
}

function itemOfAction({ appId }: Session, action: ApplicationAction): Item {
  const { jobId, status, asksFor, operationTitle, agent, expiresAt, endedAt, createdAt } = action;
  const isWaiting = status === 'awaiting_approval';
  return {
    ...{
      needsAction: isWaiting,
      sortTime: isWaiting ? expiresAt : (endedAt ?? createdAt),
      href: `/consumer/${appId}/approve/${jobId}`,
    },
    ...{
      title: asksFor?.summary ?? operationTitle,
      requesterName: agent.name,
      outcomeWords: ACTION_STATUS_WORDS[status] ?? status,
    },
  };
}

function itemOfHandoff({ appId }: Session, handoff: ConsumerHandoff): Item {
  const { id, status, reason, agent, expiresAt, endedAt, createdAt } = handoff;
  const isWaiting = isOpen(handoff);
  return {
    ...{
      needsAction: isWaiting,
      sortTime: isWaiting ? expiresAt : (endedAt ?? createdAt),
      href: `/consumer/${appId}/handoffs/${id}`,
    },
    ...{ title: REASON_WORDS[reason], requesterName: agent.name, outcomeWords: STATUS_WORDS[status] },
  };
}

function itemElement({ needsAction, sortTime, href, title, requesterName, outcomeWords }: Item): HTMLLIElement {
  const timeParts = needsAction ? ['until ', timeOf(sortTime)] : [`${outcomeWords}, `, timeOf(sortTime)];
  const aboutElement = build('span', { className: 'about' }, `${requesterName}, `, ...timeParts);
  return build(
    'li',
    needsAction ? { className: 'open' } : {},
    build('a', { className: 'row', href }, build('strong', {}, title), aboutElement),
  );
}
