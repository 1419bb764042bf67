// The people who decide Actions, after they have proved who they are: a member, an owner, or an end user of the
// application. The code that verifies a person creates an Approver, which contains everything that `Decisions` needs to
// record the person's decision.
import type { EndUser } from '../../../contract/actions.ts';
import type { Acr } from '../../../contract/sign-in.ts';
import type { StoredPasskey } from '../../engines/authenticators/passkeys.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { AuditSource } from '../audit/audit.ts';

export interface ApproverPasskey extends StoredPasskey {
  readonly id: string;
}

/** The passkeys of one person. */
export interface ApproverPasskeys {
  list(): Promise<readonly ApproverPasskey[]>;
  /** Records a use of the passkey. Returns false if its counter did not increase. */
  recordUse(id: string, counter: number): Promise<boolean>;
}

interface VerifiedApprover {
  readonly applicationId: ApplicationId;
  /** Strength of the proof of identity. */
  readonly acr: Acr;
  /** Time at which the person proved their identity. */
  readonly authTime: Date;
  /**
   * @throws Fault `insufficient_user_authentication` if the proof is too old, or if the person can give a stronger
   * proof.
   */
  readonly assertSteppedUp: () => void;
  readonly passkeys: ApproverPasskeys;
  /** For the audit log. */
  readonly source: AuditSource;
}

export interface MemberApprover extends VerifiedApprover {
  /** An `owner` may also decide what a `member` may decide. */
  readonly kind: 'member' | 'owner';
  /** Id of the account. */
  readonly id: string;
}

export interface EndUserApprover extends VerifiedApprover {
  readonly kind: 'end_user';
  readonly endUser: EndUser;
  /** All pairs of provider and subject by which agents may name this person. The first pair is `endUser`. */
  readonly names: readonly EndUser[];
}

export type Approver = MemberApprover | EndUserApprover;

/** The end users of the installation. */
export interface EndUsers {
  /** Whether this end user exists and can decide. */
  canDecide(application: ApplicationId, endUser: EndUser): Promise<boolean>;
}
