// Lets approvers read and decide Actions. A decision contains the digest of the Action. The code that creates an
// Approver has already verified the identity of the person.
import type { ActionChallenge, ApplicationAction, DecideAction } from '../../../contract/actions.ts';
import type { ActionDecision, ActionFilter, ActionRow } from '../../engines/store/rows/actions.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type ActionId, type ApplicationId, isUuid } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Catalogue } from '../configured-operations/callable.ts';
import type { IsFromSession, Peer } from '../device/from-session.ts';
import { fault, notFound, roleMissing } from '../faults.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import type { ActionAudit } from './action-audit.ts';
import type { ApprovalProofs } from './approval-proof.ts';
import type { Approver, EndUserApprover } from './approver.ts';
import { type DecisionRecord, storedDecision } from './decision-record.ts';
import { plainReason, type RenderableOperation } from './rendering.ts';
import type { SealedContent } from './sealed-content.ts';
import { alreadyDecided, assertNotOver, digestMismatch, statusAt } from './state.ts';
import { subjectDigest } from './subject-digest.ts';
import { applicationActionView } from './view.ts';

export const EXECUTE_TASK = 'execute_actions';
const END_USER_DECISIONS_PER_HOUR_MAX = 60;
const HOUR_MS = 3_600_000;

export interface DecisionsParts {
  readonly store: Pick<Store, 'actions' | 'applications' | 'keys' | 'atomically'>;
  readonly catalogue: Pick<Catalogue, 'findRevision'>;
  readonly content: SealedContent;
  readonly proofs: ApprovalProofs;
  readonly audit: ActionAudit;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
  readonly secret: Secret;
  readonly publicUrl: string;
  readonly isFromSession: IsFromSession;
  /** Makes the clock task with this name run soon. */
  readonly trigger: (task: string) => void;
}

/** The sender of a decision. */
export interface Sender {
  /** Origin of the page that sends the decision. */
  readonly origin: URL;
  readonly peer: Peer;
}

/** The permissions of the person who reads an Action. */
export interface ReaderPermissions {
  readonly mayDecide: boolean;
  readonly maySeeContent: boolean;
}

export class Decisions {
  readonly #parts: DecisionsParts;
  readonly #endUserTally: SharedTally;

  constructor(parts: DecisionsParts) {
    this.#parts = parts;
    const limit = {
      name: 'decisions',
      max: END_USER_DECISIONS_PER_HOUR_MAX,
      withinMs: HOUR_MS,
      scope: 'account',
    } as const;
    this.#endUserTally = parts.tallies.of({ ...limit, what: 'decisions' });
  }

  /** Returns an Action that names this end user, even if a member must decide it. */
  async readFor(endUser: EndUserApprover, jobId: string): Promise<ApplicationAction> {
    return this.#viewForEndUser(await this.#requireActionNaming(endUser, jobId));
  }

  /** Returns the Actions that name this end user, newest first. */
  async listFor(
    { applicationId, names }: EndUserApprover,
    filter: Pick<ActionFilter, 'states' | 'before' | 'limit'>,
  ): Promise<readonly ApplicationAction[]> {
    const rows = await this.#parts.store.actions.list(applicationId, { ...filter, endUsers: names });
    return Promise.all(rows.map(row => this.#viewForEndUser(row)));
  }

  /** Returns the Action as shown to the end user whom it names. */
  #viewForEndUser(row: ActionRow): Promise<ApplicationAction> {
    return this.viewFor(row, { mayDecide: row.approver === 'end_user', maySeeContent: true });
  }

  /**
   * Returns the challenge that a passkey of the person must sign. Empty if the person cannot use a passkey at this
   * origin.
   */
  async challenge(approver: Approver, jobId: string, origin: URL): Promise<ActionChallenge> {
    const row = await this.#requireAction(approver, jobId);
    this.#assertUndecided(row);
    const publicKey = await this.#parts.proofs.challenge(approver.passkeys, row.digest, origin);
    return publicKey ? { publicKey } : {};
  }

  async decide(
    approver: Approver,
    jobId: string,
    request: DecideAction,
    { origin, peer }: Sender,
  ): Promise<ApplicationAction> {
    const { store, clock, audit, isFromSession, trigger } = this.#parts;
    if (request.decision === 'approve' && isFromSession(peer)) throw requestFromSession();
    const initialRow = await this.#requireAction(approver, jobId);
    if (approver.kind === 'end_user') await this.#endUserTally.take(tallyNameOf(approver));
    if (request.digest !== initialRow.digest) throw digestMismatch(initialRow);
    this.#assertUndecided(initialRow);
    const record = await this.#decisionRecord(approver, initialRow, request, origin);
    const decidedRow = await store.atomically(async trx => {
      const now = clock.now();
      const row = await trx.actions.decide(
        initialRow.applicationId,
        initialRow.id,
        this.#stateChange(initialRow, request, record),
        now,
      );
      if (!row) return undefined;
      const auditAction = row.state === 'approved' ? 'action.approved' : 'action.refused';
      await audit.record(auditAction, row, approver.source, trx, { method: record.method, acr: record.acr });
      return row;
    });
    if (!decidedRow) {
      this.#assertUndecided(await this.#requireAction(approver, jobId));
      throw alreadyDecided(initialRow, 'expired');
    }
    if (decidedRow.executeAt) trigger(EXECUTE_TASK);
    return this.viewFor(decidedRow, { mayDecide: true, maySeeContent: true });
  }

  /** Returns the Action as shown to people. */
  async viewFor(row: ActionRow, { mayDecide, maySeeContent }: ReaderPermissions): Promise<ApplicationAction> {
    const { store, clock, content, publicUrl } = this.#parts;
    const [application, key, operation] = await Promise.all([
      store.applications.byId(row.applicationId),
      store.keys.get(row.applicationId, row.keyId),
      this.#readOperation(row),
    ]);
    return applicationActionView(row, {
      ...{ publicUrl, now: clock.now(), operation, mayDecide },
      content: maySeeContent ? await content.open(row) : undefined,
      application: { id: row.applicationId, name: application?.name ?? '' },
      keyName: key?.name ?? 'an agent key that no longer exists',
    });
  }

  async #readOperation({ applicationId, operationId, operationRevision }: ActionRow): Promise<RenderableOperation> {
    const operation = await this.#parts.catalogue.findRevision(applicationId, operationId, operationRevision);
    if (!operation) return { title: operationId };
    const display = operation.kind === 'managed' ? undefined : operation.definition.display;
    return { title: operation.title, ...(display ? { display } : {}) };
  }

  /** Returns the Action if the approver may decide it. */
  async #requireAction(approver: Approver, jobId: string): Promise<ActionRow> {
    const row =
      approver.kind === 'end_user'
        ? await this.#requireActionNaming(approver, jobId)
        : await this.#get(approver.applicationId, jobId);
    if ((row.approver === 'end_user') !== (approver.kind === 'end_user')) throw notFound('Action', jobId);
    if (row.approver === 'owner' && approver.kind !== 'owner') throw roleMissing('owner');
    return row;
  }

  async #requireActionNaming({ applicationId, names }: EndUserApprover, jobId: string): Promise<ActionRow> {
    const row = await this.#get(applicationId, jobId);
    const isNamed = names.some(({ providerId, subject }) => row.providerId === providerId && row.subject === subject);
    if (!isNamed) throw notFound('Action', jobId);
    return row;
  }

  async #get(application: ApplicationId, jobId: string): Promise<ActionRow> {
    const id = jobId as ActionId; // Checked by isUuid.
    const row = isUuid(jobId) ? await this.#parts.store.actions.get(application, id) : undefined;
    if (!row) throw notFound('Action', jobId);
    return row;
  }

  #assertUndecided(row: ActionRow): void {
    const status = statusAt(row, this.#parts.clock.now());
    if (status === 'awaiting_approval') return;
    if (row.decision) throw alreadyDecided(row, status);
    assertNotOver(row, status);
  }

  /**
   * Returns the record of the decision. A signature over the digest is the strongest proof. If there is no signature, a
   * recent step-up is required: for every approval by a member, and for an approval by an end user if the effect cannot
   * be undone.
   */
  async #decisionRecord(
    approver: Approver,
    row: ActionRow,
    { decision, proof, message }: DecideAction,
    origin: URL,
  ): Promise<DecisionRecord> {
    const { clock, proofs } = this.#parts;
    const isApproval = decision === 'approve';
    const verifiedProof =
      isApproval && proof ? await proofs.verify(approver.passkeys, row.digest, origin, proof) : undefined;
    const needsStepUp = isApproval && (approver.kind !== 'end_user' || row.effect === 'irreversible');
    if (needsStepUp && !verifiedProof) approver.assertSteppedUp();
    const at = clock.now().toISOString();
    return {
      by: this.#approverOf(approver),
      ...(verifiedProof
        ? { method: 'passkey', acr: 'phr', authTime: at, ...verifiedProof }
        : { method: 'session', acr: approver.acr, authTime: approver.authTime.toISOString() }),
      at,
      ...(message === undefined || isApproval ? {} : { message: plainReason(message) }),
    };
  }

  #approverOf(approver: Approver): DecisionRecord['by'] {
    if (approver.kind !== 'end_user') return { kind: approver.kind, id: approver.id };
    const id = subjectDigest(this.#parts.secret, approver.applicationId, approver.endUser);
    return { kind: 'end_user', id };
  }

  #stateChange(row: ActionRow, { decision }: DecideAction, record: DecisionRecord): ActionDecision {
    const storedRecord: JsonObject = storedDecision(record);
    if (decision === 'refuse') return { state: 'refused', decision: storedRecord };
    const { notBefore, executesOnApproval } = row;
    const now = this.#parts.clock.now();
    const executeAt = notBefore && notBefore > now ? notBefore : now;
    return { state: 'approved', decision: storedRecord, ...(executesOnApproval ? { executeAt } : {}) };
  }
}

const tallyNameOf = ({
  applicationId,
  endUser,
}: {
  applicationId: ApplicationId;
  endUser: { providerId: string; subject: string };
}) => JSON.stringify([applicationId, endUser.providerId, endUser.subject]);

const requestFromSession = (): Error =>
  fault('address_not_allowed', 'An Action cannot be approved from a browser session of this service.', {
    advice: 'Open the approval page in your own browser.',
  });
