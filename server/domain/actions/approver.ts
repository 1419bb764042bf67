// Who decides Actions, after they proved who they are: a member, an owner, or an end user of the application. Whoever verifies a
// person builds an Approver; `Decisions` asks for nothing else.
import type { EndUser } from '../../../contract/actions.ts';
import type { Acr } from '../../../contract/sign-in.ts';
import type { StoredPasskey } from '../../engines/authenticators/passkeys.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { AuditSource } from '../audit/audit.ts';

export interface ApproverPasskey extends StoredPasskey {
  readonly id: string;
}

/** The passkeys of one person, and of nobody else. */
export interface ApproverPasskeys {
  list(): Promise<readonly ApproverPasskey[]>;
  /** Records a use. False if the counter did not increase. */
  used(id: string, counter: number): Promise<boolean>;
}

interface Verified {
  readonly applicationId: ApplicationId;
  /** What they proved their identity with, and when. */
  readonly acr: Acr;
  readonly authTime: Date;
  /** Throws `insufficient_user_authentication` if the proof is too old, or weaker than the person is able to give. */
  readonly assertSteppedUp: () => void;
  readonly passkeys: ApproverPasskeys;
  /** For the audit log. */
  readonly source: AuditSource;
}

export interface MemberApprover extends Verified {
  /** `owner` decides what a member decides too. */
  readonly kind: 'member' | 'owner';
  /** Id of the account. */
  readonly id: string;
}

export interface EndUserApprover extends Verified {
  readonly kind: 'end_user';
  readonly endUser: EndUser;
  /** Everything that agents may name the same person by, the first of them `endUser`. */
  readonly names: readonly EndUser[];
}

export type Approver = MemberApprover | EndUserApprover;

/** The end users that the installation knows. */
export interface EndUsers {
  /** Whether this end user exists and can decide. */
  canDecide(application: ApplicationId, endUser: EndUser): Promise<boolean>;
}
