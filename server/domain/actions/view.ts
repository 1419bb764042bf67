// Actions as the API shows them, to agents and to people.
import type { Action, ActionContent, ApplicationAction } from '../../../contract/actions.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import { decisionView } from './decision-record.ts';
import { type RenderableOperation, render } from './rendering.ts';
import { statusAt } from './state.ts';

/** Returns the address of the approval page. For an end user, this is a consumer page of the application. */
export const approvalUrl = (
  publicUrl: string,
  { id, approver, applicationId }: Pick<ActionRow, 'id' | 'approver' | 'applicationId'>,
): string =>
  approver === 'end_user' ? `${publicUrl}/consumer/${applicationId}/approve/${id}` : `${publicUrl}/approve/${id}`;

export interface ActionViewParts {
  readonly publicUrl: string;
  readonly now: Date;
  /** Absent if the content is no longer kept, or if this reader may not see it. */
  readonly content?: ActionContent | undefined;
}

export function actionView(row: ActionRow, { publicUrl, now, content }: ActionViewParts): Action {
  const { id, digest, approver, operationId, effect, keyId, reason, decision, why, heldBack, invocationId } = row;
  return {
    ...{ jobId: id, status: statusAt(row, now), digest, approver, approvalUrl: approvalUrl(publicUrl, row) },
    ...{ operationId, effect, executeOnApproval: row.executesOnApproval, caller: { keyId } },
    ...(content ? { action: content } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(row.metadata ? { metadata: row.metadata as Record<string, string> } : {}), // Validated by the contract.
    ...{ createdAt: row.createdAt.toISOString(), expiresAt: row.expiresAt.toISOString() },
    ...(row.endedAt ? { endedAt: row.endedAt.toISOString() } : {}),
    ...(decision ? { decision: decisionView(decision) } : {}),
    ...(why === undefined ? {} : { why }),
    ...(heldBack === undefined ? {} : { heldBack }),
    ...(invocationId === undefined ? {} : { invocationId }),
  };
}

export interface ApplicationActionViewParts extends ActionViewParts {
  readonly application: { readonly id: string; readonly name: string };
  readonly operation: RenderableOperation;
  readonly keyName: string;
  readonly mayDecide: boolean;
}

export function applicationActionView(row: ActionRow, parts: ApplicationActionViewParts): ApplicationAction {
  const { application, operation, keyName, content, mayDecide, now } = parts;
  const renderedInput = content && render(operation, content.input);
  return {
    ...actionView(row, parts),
    application: { id: application.id, name: application.name },
    operationTitle: operation.title,
    agent: { name: keyName },
    ...(renderedInput ? { asksFor: { summary: renderedInput.summary, fields: [...renderedInput.fields] } } : {}),
    mayDecide: mayDecide && statusAt(row, now) === 'awaiting_approval',
  };
}
