// The page of a hand-off that names the consumer. It shows who asks for what, on which page; then control in the live
// view; then the outcome. What the agent wrote is shown separately, as plain text.
import type { ConsumerHandoff } from '../../contract/consumer-handoffs.ts';
import type { ClaimedHandoff, HandoffOutcome } from '../../contract/handoffs.ts';
import { isOpen, REASON_WORDS } from './handoff-words.ts';
import { Lease } from './lease.ts';
import { busy, byId, make, Refused, showProblem, timeOf, titled } from './parts.ts';
import type { Session } from './session.ts';

/** Characters that would change the order in which a text is shown. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const OVER: Readonly<Record<ConsumerHandoff['status'], string>> = {
  requested: '',
  claimed: 'You have control in another window. If you closed that window, you can take control again within a minute.',
  completed: 'You have completed this request.',
  declined: 'You have declined this request.',
  failed: 'You have reported that it could not be done.',
  cancelled: 'The agent has withdrawn this request.',
  expired: 'The time ran out, and the agent continued without your help.',
  session_ended: 'The browser of the agent was closed.',
};

const RECORD_WORDS: Readonly<Record<ConsumerHandoff['record'], string>> = {
  mask: 'What you do is hidden from the recording and from the agent.',
  pause: 'Nothing is recorded, and the agent cannot read the page.',
  keep: 'What you do is recorded, and the agent can read the page.',
};

export async function showHandoff(session: Session, id: string): Promise<void> {
  const handoff = await session.send<ConsumerHandoff>('handoffs.get', { id });
  const lease = handoff.status === 'claimed' ? Lease.stored(session.appId, id) : undefined;
  if (lease) return work(session, handoff, lease);
  draw(session, handoff);
}

function draw(session: Session, handoff: ConsumerHandoff, said = OVER[handoff.status]): void {
  const { reason, agent, instructions, pageOrigin, allowedOrigins, record, expiresAt, status } = handoff;
  document.body.className = 'single';
  titled(REASON_WORDS[reason], `${agent.name} asks you to take control of its browser at ${session.application}.`);
  const asked = make(
    'section',
    { className: 'said' },
    make('h2', {}, 'The agent says'),
    make('p', {}, plain(instructions)),
  );
  const only = allowedOrigins ? pair('Only these sites', allowedOrigins.join(', ')) : [];
  const facts = make(
    'dl',
    {},
    ...pair('Page', pageOrigin ?? 'No page is open yet'),
    ...only,
    ...pair('Recording', RECORD_WORDS[record]),
    ...pair('Open until', timeOf(expiresAt)),
  );
  if (status === 'requested')
    return byId('body').replaceChildren(
      asked,
      facts,
      make(
        'p',
        { className: 'soft' },
        `The browser belongs to ${session.application}. Type a secret only if you trust this application and the page above.`,
      ),
      make('div', { className: 'stack' }, takeControl(session, handoff)),
    );
  byId('body').replaceChildren(
    ...(isOpen(handoff) ? [asked] : []),
    make('p', { className: 'done', role: 'status' }, said),
    make('a', { className: 'plainly', href: `/consumer/${session.appId}` }, 'See what else is waiting for you'),
  );
}

function takeControl(session: Session, handoff: ConsumerHandoff): HTMLButtonElement {
  const { id } = handoff;
  const take = make('button', { type: 'button', className: 'main' }, 'Take control');
  take.addEventListener('click', () =>
    busy([take], async () => {
      try {
        const claimed = await session.send<ClaimedHandoff>('handoffs.claim', { id });
        work(session, handoff, Lease.of(session.appId, claimed));
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 409) throw error;
        draw(session, await session.send<ConsumerHandoff>('handoffs.get', { id }));
      }
    }),
  );
  return take;
}

function work(session: Session, handoff: ConsumerHandoff, lease: Lease): void {
  document.body.className = 'work';
  document.title = `You have control · ${session.application}`;
  titled('You have control');
  byId('nav').hidden = true;
  const asked = make('p', { className: 'asked' }, plain(handoff.instructions));
  const view = make('iframe', { title: 'The browser', src: lease.viewUrl, allow: 'clipboard-read; clipboard-write' });
  const note = make('input', { maxLength: 1000, placeholder: 'Message for the agent (optional)' });
  note.setAttribute('aria-label', 'Message for the agent');
  const end = (status: ConsumerHandoff['status'], said: string): void => {
    lease.close();
    showProblem(undefined);
    draw(session, { ...handoff, status }, said);
  };
  const lost = async (): Promise<void> => {
    lease.close();
    draw(session, await session.send<ConsumerHandoff>('handoffs.get', { id: handoff.id }));
    showProblem(new Error('Your control of the browser has ended.'));
  };
  const finish = async (outcome: HandoffOutcome, said: string): Promise<void> => {
    const text = note.value.trim();
    await lease.complete(outcome, text === '' ? undefined : text);
    end(outcome, said);
  };
  const done = make('button', { type: 'button', className: 'main' }, 'Done');
  const failed = make('button', { type: 'button' }, 'Could not do it');
  const back = make('button', { type: 'button', className: 'quiet' }, 'Give it back');
  const all = [done, failed, back];
  const onClick = (one: HTMLButtonElement, act: () => Promise<void>): void =>
    one.addEventListener('click', () =>
      busy(all, () => act().catch(error => (Lease.isOver(error) ? lost() : Promise.reject(error)))),
    );
  onClick(done, () => finish('completed', 'Thank you. The agent has control again.'));
  onClick(failed, () => finish('failed', 'The agent was notified, and has control again.'));
  onClick(back, async () => {
    await lease.giveBack();
    lease.close();
    draw(session, { ...handoff, status: 'requested' });
  });
  const buttons = make('div', { className: 'ends' }, ...all);
  byId('body').replaceChildren(asked, view, make('div', { className: 'foot' }, note, buttons));
  lease.keep(
    () => showProblem(undefined),
    error => (Lease.isOver(error) ? void lost().catch(showProblem) : showProblem(error)),
  );
}

const plain = (text: string): string => text.replace(BIDI, '');

const pair = (label: string, value: string | Node) => [make('dt', {}, label), make('dd', {}, value)];
