// The roles of members, and the weakest role that each right needs. The scopes of a token can narrow a role but never
// widen it.

/** The roles, from the one with the fewest rights to the one with the most. */
export const ROLES = ['viewer', 'developer', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

export const REQUIRED_ROLE = {
  /** Read configuration, metadata, limits, usage and the audit log. */
  read: 'viewer',
  agentKeys: 'developer',
  webhooks: 'developer',
  /** Configure, publish and withdraw operations. */
  operations: 'developer',
  /** Read the inputs and outputs of invocations while they are kept. */
  invocationResults: 'developer',
  /** Delete operations, raise their price, or weaken the approval that they require. */
  relaxOperations: 'admin',
  /** Write and rotate credentials of other services. */
  credentials: 'developer',
  /** Delete credentials of other services, or restore an earlier version. */
  removeCredentials: 'admin',
  /** Decide Actions that a member must approve. */
  approveActions: 'admin',
  /** Decide Actions that an owner must approve. */
  approveAsOwner: 'owner',
  /** Request and claim hand-offs. */
  handoffs: 'developer',
  /** Authorize a program on another device. */
  approveDevices: 'developer',
  rename: 'admin',
  /** Manage members and invitations. No member can give or take away a role above their own. */
  members: 'admin',
  /** Configure how consumers sign in. */
  identity: 'admin',
  limits: 'owner',
  /** Buy credit. */
  topUps: 'owner',
  /** Make members owners, and change or remove other owners. */
  owners: 'owner',
} as const satisfies Readonly<Record<string, Role>>;
export type Right = keyof typeof REQUIRED_ROLE;

export const isAtLeast = (role: Role, minRole: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(minRole);

export const hasRight = (role: Role, right: Right): boolean => isAtLeast(role, REQUIRED_ROLE[right]);
