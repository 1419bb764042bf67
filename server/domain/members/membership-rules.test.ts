import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLES, type Role } from '../../../contract/roles.ts';
import { isFault } from '../../kit/fault.ts';
import { assertMayChange, assignableRoles } from './membership-rules.ts';

/** `stepped up` means that the change is allowed only with a step-up. */
function outcomeOf(
  requesterRole: Role,
  memberRole: Role,
  role: Role | undefined,
  more: { isOwn?: boolean; owners?: number } = {},
): string {
  const proof = { asked: false };
  const assertSteppedUp = (): void => {
    proof.asked = true;
  };
  const { isOwn = false, owners = 2 } = more;
  try {
    assertMayChange(
      { requesterRole, memberRole, owners },
      { account: 'a', isOwn, assertSteppedUp, ...(role ? { role } : {}) },
    );
    return proof.asked ? 'stepped up' : 'allowed';
  } catch (error) {
    assert.ok(isFault(error), String(error));
    return error.code;
  }
}

test('viewers and developers cannot change members', () => {
  for (const by of ['viewer', 'developer'] as const)
    for (const member of ROLES)
      for (const role of [...ROLES, undefined]) assert.equal(outcomeOf(by, member, role), 'permission_denied');
});

test('only owners, after a step-up, may make changes that involve the owner role; admins and owners may make all other changes', () => {
  for (const member of ROLES)
    for (const role of [...ROLES, undefined]) {
      const isAboutOwner = member === 'owner' || role === 'owner';
      assert.equal(outcomeOf('admin', member, role), isAboutOwner ? 'permission_denied' : 'allowed');
      assert.equal(outcomeOf('owner', member, role), isAboutOwner ? 'stepped up' : 'allowed');
    }
});

test('lets every member leave, except the last owner', () => {
  for (const role of ROLES) assert.equal(outcomeOf(role, role, undefined, { isOwn: true }), 'allowed');
  assert.equal(outcomeOf('owner', 'owner', undefined, { isOwn: true, owners: 1 }), 'last_owner');
  assert.equal(outcomeOf('owner', 'owner', 'admin', { isOwn: true, owners: 1 }), 'last_owner');
});

test('refuses a change with not_found if the caller or the member has been removed in the meantime', () => {
  const requestedChange = { account: 'a', isOwn: false, assertSteppedUp: () => {} };
  const states: ReadonlyArray<Parameters<typeof assertMayChange>[0]> = [
    { owners: 1 },
    { requesterRole: 'owner', owners: 1 },
    { memberRole: 'viewer', owners: 1 },
  ];
  for (const state of states) assert.throws(() => assertMayChange(state, requestedChange), { code: 'not_found' });
});

test('only admins and owners can invite, and only to their own role or a lower role', () => {
  assert.deepEqual(ROLES.map(assignableRoles), [[], [], ['viewer', 'developer', 'admin'], [...ROLES]]);
  assert.deepEqual(assignableRoles(undefined), []);
});
