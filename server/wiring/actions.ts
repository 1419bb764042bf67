// The wiring of Actions: sealed contents, proofs by passkey, the invocations that execute Actions, and the inbox of the
// members who decide about them.
import { ActionAudit } from '../domain/actions/action-audit.ts';
import { AgentActions } from '../domain/actions/agent-actions.ts';
import { ApplicationActions } from '../domain/actions/application-actions.ts';
import { ApprovalProofs } from '../domain/actions/approval-proof.ts';
import type { EndUsers } from '../domain/actions/approver.ts';
import { Decisions } from '../domain/actions/decisions.ts';
import { SealedContent } from '../domain/actions/sealed-content.ts';
import { actionTasks } from '../domain/actions/tasks.ts';
import { ChangeFollower } from '../domain/change-follower.ts';
import { createIsFromSession } from '../domain/device/from-session.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { Mail } from '../domain/mail/mail.ts';
import { readAuthentication } from '../engines/authenticators/passkey-response.ts';
import { signingChallenge, verifyAuthentication } from '../engines/authenticators/passkeys.ts';
import { passkeyJwk } from '../engines/authenticators/public-jwk.ts';
import { machineAddressMatcher } from '../engines/egress/this-machine.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { openInbox } from './inbox.ts';
import type { openInvocations } from './invocations.ts';

export interface ActionsDeps {
  readonly invocations: Pick<ReturnType<typeof openInvocations>, 'service' | 'catalogue'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly mail: Mail;
  /** If absent, no end user can approve Actions. */
  readonly endUsers?: EndUsers;
}

export type OpenedActions = Awaited<ReturnType<typeof openActions>>;

export async function openActions(
  runtime: Runtime,
  foundation: Foundation,
  { invocations, applications, mail, endUsers }: ActionsDeps,
) {
  const { clock } = runtime;
  const { store, vault, secret, config, trigger, outboundEndpoints, tallies } = foundation;
  const audit = new ActionAudit(foundation.audit);
  const content = new SealedContent(vault);
  const changeFollower = await ChangeFollower.open('action_changed', { store, clock });
  const proofs = new ApprovalProofs({
    webauthn: { signingChallenge, verifyAuthentication, readAuthentication, passkeyJwk },
  });
  const commonParts = { store, content, audit, clock, secret, publicUrl: config.publicUrl };
  const isThisMachine = machineAddressMatcher(clock);
  const isFromSession = createIsFromSession({
    hasOutgoingConnection: (address, port) => outboundEndpoints.has(address, port),
    isThisMachine,
  });
  const decisions = new Decisions({
    ...{ ...commonParts, tallies, catalogue: invocations.catalogue },
    ...{ proofs, isFromSession, trigger },
  });
  const agent = new AgentActions({
    ...{ ...commonParts, changeFollower, invocations: invocations.service },
    ...(endUsers ? { endUsers } : {}),
  });
  const cursors = new Cursors(secret, clock);
  const applicationActions = new ApplicationActions({ store, applications, decisions, cursors, clock });
  const inbox = await openInbox(runtime, foundation, { mail });
  return {
    service: { agent, applicationActions },
    decisions,
    inbox: inbox.service,
    tasks: [...actionTasks({ ...runtime, store, keys: store.keys, agent, audit }), ...inbox.tasks],
    close: async () => {
      await changeFollower.close();
      await inbox.close();
    },
  };
}
