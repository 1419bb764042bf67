// The page on which a consumer decides an Action. The question is built from the content that the consumer approves.
// The message of the agent is shown separately.
import type { ActionChallenge, ApplicationAction } from '../../contract/actions.ts';
import { askPasskey, supportsPasskeys } from '../src/api/passkeys.ts';
import { build, byId, setTitle, timeOf, withDisabled } from './parts.ts';
import type { Session } from './session.ts';

const END_TEXTS: Readonly<Record<string, string>> = {
  awaiting_approval: 'A member of the team of this application will decide on this request.',
  approved: 'You have approved this. The operation will be executed once.',
  refused: 'You have refused this request.',
  expired: 'The time to decide has run out.',
  cancelled: 'The agent has withdrawn this request.',
};

export async function showApproval(session: Session, jobId: string): Promise<void> {
  draw(session, await session.send<ApplicationAction>('actions.get', { jobId }));
}

function draw(session: Session, action: ApplicationAction): void {
  const { asksFor, agent, reason, operationTitle, effect, mayDecide, status, expiresAt } = action;
  setTitle(asksFor?.summary ?? operationTitle, `${agent.name} asks to do this for you at ${action.application.name}.`);
  const fields = (asksFor?.fields ?? []).flatMap(({ label, value }) => [
    build('dt', {}, label),
    build('dd', {}, value),
  ]);
  const deadlineParts = mayDecide ? [build('dt', {}, 'Decide by'), build('dd', {}, timeOf(expiresAt))] : [];
  const warning =
    effect === 'irreversible' && mayDecide ? [build('p', { className: 'warn' }, 'This cannot be undone.')] : [];
  const agentStatement =
    reason === undefined
      ? []
      : [build('section', { className: 'said' }, build('h2', {}, 'The agent says'), build('p', {}, reason))];
  const footer = mayDecide
    ? [build('div', { className: 'decide' }, ...createDecisionButtons(session, action))]
    : [
        build(
          'p',
          { className: 'done', role: 'status' },
          END_TEXTS[status] ?? 'This request has been decided and executed.',
        ),
        build('a', { className: 'plainly', href: `/consumer/${session.appId}` }, 'See what else is waiting for you'),
      ];
  byId('body').replaceChildren(build('dl', {}, ...fields, ...deadlineParts), ...agentStatement, ...warning, ...footer);
}

function createDecisionButtons(session: Session, { jobId, digest }: ApplicationAction): readonly HTMLButtonElement[] {
  const approveButton = build('button', { type: 'button', className: 'main' }, 'Approve');
  const refuseButton = build('button', { type: 'button', className: 'bad' }, 'Refuse');
  const decisionButtons = [approveButton, refuseButton];
  approveButton.addEventListener('click', () =>
    withDisabled(decisionButtons, async () => {
      const proof = await requestProof(session, jobId);
      draw(session, await session.send<ApplicationAction>('actions.approve', { jobId, digest, ...proof }));
    }),
  );
  refuseButton.addEventListener('click', () =>
    withDisabled(decisionButtons, async () =>
      draw(session, await session.send<ApplicationAction>('actions.refuse', { jobId, digest })),
    ),
  );
  return decisionButtons;
}

/** Returns the signature of the consumer's passkey over the digest, if the consumer has a passkey. */
async function requestProof({ send }: Session, jobId: string): Promise<object> {
  if (!supportsPasskeys()) return {};
  const { publicKey } = await send<ActionChallenge>('actions.challenge', { jobId });
  return publicKey ? { proof: await askPasskey({ ticket: '', publicKey }) } : {};
}
