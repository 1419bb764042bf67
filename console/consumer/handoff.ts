// The page of a hand-off that names the consumer. It shows the request of the agent and the page that is open, then the
// live view while the consumer has control, then the outcome. The message of the agent is shown separately, as plain
// text.
import type { ConsumerHandoff } from '../../contract/consumer-handoffs.ts';
import type { ClaimedHandoff, HandoffOutcome } from '../../contract/handoffs.ts';
import { isOpen, REASON_WORDS } from './handoff-words.ts';
import { Lease } from './lease.ts';
import { build, byId, CommandError, setTitle, showProblem, timeOf, withDisabled } from './parts.ts';
import type { Session } from './session.ts';

/** Characters that would change the order in which text is displayed. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const END_TEXTS: Readonly<Record<ConsumerHandoff['status'], string>> = {
  requested: '',
  claimed: 'You have control in another window. If you closed that window, you can take control again within a minute.',
  completed: 'You have completed this request.',
  declined: 'You have declined this request.',
  failed: 'You have reported that this request could not be completed.',
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
  const lease = handoff.status === 'claimed' ? Lease.restore(session.appId, id) : undefined;
  if (lease) return showControlView(session, handoff, lease);
  draw(session, handoff);
}

function draw(session: Session, handoff: ConsumerHandoff, message = END_TEXTS[handoff.status]): void {
  const { reason, agent, instructions, pageOrigin, allowedOrigins, record, expiresAt, status } = handoff;
  document.body.className = 'single';
  setTitle(REASON_WORDS[reason], `${agent.name} asks you to take control of its browser at ${session.application}.`);
  const agentMessage = build(
    'section',
    { className: 'said' },
    build('h2', {}, 'The agent says'),
    build('p', {}, withoutBidi(instructions)),
  );
  const originParts = allowedOrigins ? pair('Only these sites', allowedOrigins.join(', ')) : [];
  const detailList = build(
    'dl',
    {},
    ...pair('Page', pageOrigin ?? 'No page is open yet'),
    ...originParts,
    ...pair('Recording', RECORD_WORDS[record]),
    ...pair('Open until', timeOf(expiresAt)),
  );
  if (status === 'requested')
    return byId('body').replaceChildren(
      agentMessage,
      detailList,
      build(
        'p',
        { className: 'soft' },
        `The browser belongs to ${session.application}. Type a secret only if you trust this application and the page above.`,
      ),
      build('div', { className: 'stack' }, createTakeButton(session, handoff)),
    );
  byId('body').replaceChildren(
    ...(isOpen(handoff) ? [agentMessage] : []),
    build('p', { className: 'done', role: 'status' }, message),
    build('a', { className: 'plainly', href: `/consumer/${session.appId}` }, 'See what else is waiting for you'),
  );
}

function createTakeButton(session: Session, handoff: ConsumerHandoff): HTMLButtonElement {
  const { id } = handoff;
  const takeButton = build('button', { type: 'button', className: 'main' }, 'Take control');
  takeButton.addEventListener('click', () =>
    withDisabled([takeButton], async () => {
      try {
        const claimedHandoff = await session.send<ClaimedHandoff>('handoffs.claim', { id });
        showControlView(session, handoff, Lease.create(session.appId, claimedHandoff));
      } catch (error) {
        if (!(error instanceof CommandError) || error.status !== 409) throw error;
        draw(session, await session.send<ConsumerHandoff>('handoffs.get', { id }));
      }
    }),
  );
  return takeButton;
}

function showControlView(session: Session, handoff: ConsumerHandoff, lease: Lease): void {
  document.body.className = 'work';
  document.title = `You have control · ${session.application}`;
  setTitle('You have control');
  byId('nav').hidden = true;
  // Focusable, so that long instructions can be scrolled with the keyboard.
  const agentMessage = build('section', { className: 'asked', tabIndex: 0 }, withoutBidi(lease.instructions));
  agentMessage.setAttribute('aria-label', 'The agent says');
  const view = build('iframe', { title: 'The browser', src: lease.viewUrl, allow: 'clipboard-read; clipboard-write' });
  const noteInput = build('input', { maxLength: 1000, placeholder: 'Message for the agent (optional)' });
  noteInput.setAttribute('aria-label', 'Message for the agent');
  const end = (status: ConsumerHandoff['status'], message: string): void => {
    lease.close();
    showProblem(undefined);
    draw(session, { ...handoff, status }, message);
  };
  const onControlLost = async (): Promise<void> => {
    lease.close();
    draw(session, await session.send<ConsumerHandoff>('handoffs.get', { id: handoff.id }));
    showProblem(new Error('You no longer have control of the browser.'));
  };
  const finish = async (outcome: HandoffOutcome, message: string): Promise<void> => {
    const text = noteInput.value.trim();
    await lease.complete(outcome, text === '' ? undefined : text);
    end(outcome, message);
  };
  const doneButton = build('button', { type: 'button', className: 'main' }, 'Done');
  const failedButton = build('button', { type: 'button' }, 'Could not do it');
  const giveBackButton = build('button', { type: 'button', className: 'quiet' }, 'Give it back');
  const endButtons = [doneButton, failedButton, giveBackButton];
  const onClick = (endButton: HTMLButtonElement, action: () => Promise<void>): void =>
    endButton.addEventListener('click', () =>
      withDisabled(endButtons, () =>
        action().catch(error => (Lease.isOver(error) ? onControlLost() : Promise.reject(error))),
      ),
    );
  onClick(doneButton, () => finish('completed', 'Thank you. The agent has control again.'));
  onClick(failedButton, () => finish('failed', 'The agent was notified, and has control again.'));
  onClick(giveBackButton, async () => {
    await lease.giveBack();
    lease.close();
    draw(session, { ...handoff, status: 'requested' });
  });
  const buttonRow = build('div', { className: 'ends' }, ...endButtons);
  byId('body').replaceChildren(agentMessage, view, build('div', { className: 'foot' }, noteInput, buttonRow));
  lease.startRenewing(
    () => showProblem(undefined),
    error => (Lease.isOver(error) ? void onControlLost().catch(showProblem) : showProblem(error)),
  );
}

const withoutBidi = (text: string): string => text.replace(BIDI, '');

const pair = (label: string, value: string | Node) => [build('dt', {}, label), build('dd', {}, value)];
