// An Action that a consumer decides. What is asked comes from the content that is approved; what the agent says stands apart.
import type { ActionChallenge, ApplicationAction } from '../../contract/actions.ts';
import { askPasskey, hasPasskeys } from '../src/api/passkeys.ts';
import { busy, byId, make } from './parts.ts';

export type Send = <Answer>(name: string, body?: object) => Promise<Answer>;

const OVER: Readonly<Record<string, string>> = {
  approved: 'You have approved this. It is executed once.',
  refused: 'You have refused this.',
  expired: 'The time to decide this is over.',
  cancelled: 'The agent has withdrawn this.',
};

export async function showApproval(send: Send, jobId: string): Promise<void> {
  draw(send, await send<ApplicationAction>('actions.get', { jobId }));
}

function draw(send: Send, action: ApplicationAction): void {
  const { asksFor, agent, reason, operationTitle, effect, mayDecide, status } = action;
  byId('title').textContent = asksFor?.summary ?? operationTitle;
  byId('lead').textContent = `${agent.name} asks ${action.application.name} to do this for you.`;
  const fields = (asksFor?.fields ?? []).flatMap(({ label, value }) => [make('dt', {}, label), make('dd', {}, value)]);
  const warning = effect === 'irreversible' ? [make('p', { className: 'problem' }, 'This cannot be undone.')] : [];
  const said = reason === undefined ? [] : [make('h2', {}, 'The agent says'), make('p', { className: 'done' }, reason)];
  const end = mayDecide
    ? [make('div', { className: 'stack' }, ...buttons(send, action))]
    : [make('p', { className: 'done', role: 'status' }, OVER[status] ?? 'This has been decided and executed.')];
  byId('body').replaceChildren(...warning, make('dl', {}, ...fields), ...said, ...end);
}

function buttons(send: Send, { jobId, digest }: ApplicationAction): readonly HTMLButtonElement[] {
  const approve = make('button', { type: 'button', className: 'main' }, 'Approve');
  const refuse = make('button', { type: 'button', className: 'bad' }, 'Refuse');
  const both = [approve, refuse];
  approve.addEventListener('click', () =>
    busy(both, async () => {
      const proof = await proofOf(send, jobId);
      draw(send, await send<ApplicationAction>('actions.approve', { jobId, digest, ...proof }));
    }),
  );
  refuse.addEventListener('click', () =>
    busy(both, async () => draw(send, await send<ApplicationAction>('actions.refuse', { jobId, digest }))),
  );
  return both;
}

/** A signature of the consumer's passkey over the digest, if there is one. */
async function proofOf(send: Send, jobId: string): Promise<object> {
  if (!hasPasskeys()) return {};
  const { publicKey } = await send<ActionChallenge>('actions.challenge', { jobId });
  return publicKey ? { proof: await askPasskey({ ticket: '', publicKey }) } : {};
}
