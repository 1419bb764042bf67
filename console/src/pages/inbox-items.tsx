// The waiting items of the inbox. An item on which the user can act is shown with everything that the decision
// requires. An item for other people takes one line.
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';
import { AgentMessage, Approval, DecisionButtons, Fact, Facts } from '../people/approval.tsx';
import { agentText, HANDOFF_REASON_WORDS, HANDOFF_RECORD_WORDS } from '../people/handoff-words.ts';
import { buttonClass } from '../ui/button.tsx';
import { Icon, type IconName } from '../ui/icon.tsx';
import { Ago, TimeLeft } from '../ui/time.tsx';
import { APPROVER_WORDS } from './inbox-words.ts';

export const LINK = 'underline decoration-line-strong underline-offset-2 hover:text-accent';

export const SessionLink = ({ app, id }: { readonly app: string; readonly id: string }) => (
  <Link to="/a/$app/sessions/$id" params={{ app, id }} className={LINK}>
    session {id.slice(0, 8)}
  </Link>
);

function Card({
  icon,
  kind,
  title,
  until,
  children,
}: {
  readonly icon: IconName;
  readonly kind: string;
  readonly title: string;
  readonly until: string;
  readonly children: ReactNode;
}) {
  return (
    <li className="overflow-hidden rounded-lg border border-line bg-raised">
      <header className="border-b border-line px-4 py-3">
        <p className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-xs text-soft">
          <span className="flex items-center gap-1.5 font-medium">
            <Icon name={icon} size={16} />
            {kind}
          </span>
          <TimeLeft until={until} />
        </p>
        <h3 className="mt-1 text-base font-semibold break-words">{title}</h3>
      </header>
      <div className="grid gap-4 p-4">{children}</div>
    </li>
  );
}

export function ApprovalCard({ app, action }: { readonly app: string; readonly action: ApplicationAction }) {
  const client = useQueryClient();
  const { asksFor, operationTitle, agent, createdAt, expiresAt } = action;
  return (
    <Card icon="keys" kind="Approval" title={asksFor?.summary ?? operationTitle} until={expiresAt}>
      <Approval action={action} heading="h4" />
      <p className="text-sm text-soft">
        Asked by the agent key {agent.name}, <Ago time={createdAt} />. If you did not expect this, refuse it.
      </p>
      <DecisionButtons action={action} onDecided={() => void client.invalidateQueries({ queryKey: ['inbox', app] })} />
    </Card>
  );
}

/** `isViewerInControl`: the person who sees the card already has control of the browser. */
export function HandoffCard({
  app,
  handoff,
  agentName,
  isViewerInControl,
}: {
  readonly app: string;
  readonly handoff: Handoff;
  readonly agentName: string | undefined;
  readonly isViewerInControl: boolean;
}) {
  const { id, reason, instructions, sessionId, record, createdAt, expiresAt, pageOrigin } = handoff;
  const title = isViewerInControl
    ? `You have control: ${HANDOFF_REASON_WORDS[reason].toLowerCase()}`
    : HANDOFF_REASON_WORDS[reason];
  return (
    <Card icon="sessions" kind="Take control" title={title} until={expiresAt}>
      <Facts label="Details" isPlain>
        <Fact name="Page">{pageOrigin ?? 'Shown before you take control'}</Fact>
        <Fact name="Browser">
          <SessionLink app={app} id={sessionId} />
        </Fact>
        <Fact name="Recording">{HANDOFF_RECORD_WORDS[record]}</Fact>
      </Facts>
      <AgentMessage heading="h4">{agentText(instructions)}</AgentMessage>
      <p className="text-sm text-soft">
        Asked by {agentName === undefined ? 'an agent' : `the agent key ${agentName}`}, <Ago time={createdAt} />. The
        agent is waiting.
      </p>
      <div className="flex justify-end">
        <a href={`/handoffs/${id}?app=${app}`} className={buttonClass('primary')}>
          {isViewerInControl ? 'Continue' : 'Help the agent'}
        </a>
      </div>
    </Card>
  );
}

const Line = ({
  icon,
  title,
  children,
  until,
}: {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ReactNode;
  readonly until: string;
}) => (
  <li className="grid grid-cols-[auto_minmax(0,1fr)_auto] items-center gap-x-3 px-4 py-2.5 text-sm">
    <span className="text-soft">
      <Icon name={icon} size={16} />
    </span>
    <div className="min-w-0">
      <p className="font-medium break-words">{title}</p>
      <p className="text-xs break-words text-soft">{children}</p>
    </div>
    <span className="text-right text-xs text-soft">
      <TimeLeft until={until} />
    </span>
  </li>
);

export const ApprovalLine = ({ action }: { readonly action: ApplicationAction }) => (
  <Line icon="keys" title={action.asksFor?.summary ?? action.operationTitle} until={action.expiresAt}>
    Waiting for {APPROVER_WORDS[action.approver]}. Asked by {action.agent.name}, <Ago time={action.createdAt} />.
  </Line>
);

export const HandoffLine = ({
  app,
  handoff,
  holder,
}: {
  readonly app: string;
  readonly handoff: Handoff;
  readonly holder: string | undefined;
}) => (
  <Line icon="sessions" title={HANDOFF_REASON_WORDS[handoff.reason]} until={handoff.expiresAt}>
    {handoff.status === 'claimed'
      ? `${holder ?? 'A person'} has control of `
      : handoff.claimableBy.includes('members')
        ? 'Waiting for a developer to take control of '
        : handoff.claimableBy.includes('end_user')
          ? 'Waiting for an end user to take control of '
          : 'Waiting for someone with the link to take control of '}
    <SessionLink app={app} id={handoff.sessionId} />.
  </Line>
);
