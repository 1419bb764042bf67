// What waits for the consumer, and what was decided lately.
import type { ApplicationAction, ApplicationActionPage } from '../../contract/actions.ts';
import { byId, make, timeOf, titled } from './parts.ts';
import type { Session } from './session.ts';

const LATELY = 10;
const WAITING = 50;

const WORDS: Readonly<Record<string, string>> = {
  approved: 'approved, not done yet',
  executing: 'being done',
  succeeded: 'done',
  failed: 'approved, and failed',
  ambiguous: 'approved; whether it was done is not known',
  refused: 'refused',
  expired: 'expired',
  cancelled: 'withdrawn',
};

export async function showWaiting(session: Session): Promise<void> {
  const [waiting, lately] = await Promise.all([
    session.send<ApplicationActionPage>('actions.list', { status: 'awaiting_approval', limit: WAITING }),
    session.send<ApplicationActionPage>('actions.list', { limit: LATELY }),
  ]);
  const over = lately.data.filter(({ status }) => status !== 'awaiting_approval');
  titled(waiting.data.length === 0 ? 'Nothing waits for you' : 'For you to decide');
  byId('body').replaceChildren(
    waiting.data.length === 0
      ? make('p', { className: 'soft' }, `When an agent of ${session.application} needs your yes, it is listed here.`)
      : make('ul', { className: 'plain' }, ...waiting.data.map(action => item(session, action))),
    ...(over.length > 0
      ? [make('h2', {}, 'Lately'), make('ul', { className: 'plain' }, ...over.map(action => item(session, action)))]
      : []),
  );
}

function item({ appId }: Session, action: ApplicationAction): HTMLLIElement {
  const { jobId, status, asksFor, operationTitle, agent, expiresAt, endedAt, createdAt } = action;
  const isOpen = status === 'awaiting_approval';
  const when = isOpen ? ['until ', timeOf(expiresAt)] : [`${WORDS[status] ?? status}, `, timeOf(endedAt ?? createdAt)];
  const link = make(
    'a',
    { className: 'row', href: `/consumer/${appId}/approve/${jobId}` },
    make('strong', {}, asksFor?.summary ?? operationTitle),
    make('span', { className: 'about' }, `${agent.name}, `, ...when),
  );
  return make('li', isOpen ? { className: 'open' } : {}, link);
}
