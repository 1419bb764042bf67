// Rules for changing roles: no member gives or takes a role above their own, and an application always has an owner.
import { hasRight, REQUIRED_ROLE, ROLES, type Role } from '../../../contract/roles.ts';
import type { MembershipState } from '../../engines/store/rows/members.ts';
import { fault, notFound, roleMissing } from '../faults.ts';

export interface RequestedChange {
  readonly account: string;
  /** If absent, the member is removed. */
  readonly role?: Role;
  readonly isOwn: boolean;
  /** Throws unless the caller has recently proved their identity. */
  readonly assertSteppedUp: () => void;
}

/**
 * Checks a change or removal of a member against the roles of the caller and of the member.
 * @throws Fault if the change is not allowed.
 */
export function assertMayChange(
  { requesterRole, memberRole, owners }: MembershipState,
  { account, role, isOwn, assertSteppedUp }: RequestedChange,
): void {
  const isLeaving = isOwn && role === undefined;
  if (!requesterRole || !memberRole) throw notFound('Member', account);
  if (!isLeaving && !hasRight(requesterRole, 'members')) throw roleMissing(REQUIRED_ROLE.members);
  const isAboutOwner = memberRole === 'owner' || role === 'owner';
  if (isAboutOwner && !isLeaving) {
    if (!hasRight(requesterRole, 'owners')) throw roleMissing(REQUIRED_ROLE.owners);
    assertSteppedUp();
  }
  if (memberRole === 'owner' && role !== 'owner' && owners === 1) throw lastOwner();
}

/** Whether a member with the role `role` may give `assignedRole` to a member. */
export const mayAssign = (role: Role, assignedRole: Role): boolean =>
  hasRight(role, assignedRole === 'owner' ? 'owners' : 'members');

/** The roles that a member with this role may give. */
export const assignableRoles = (role: Role | undefined): Role[] =>
  role === undefined ? [] : ROLES.filter(given => mayAssign(role, given));

const lastOwner = (): Error =>
  fault('last_owner', 'The only owner of an application cannot be removed or given another role.', {
    advice: 'Make another member an owner first.',
  });
