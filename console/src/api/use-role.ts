// The role of the person or token in an application.
import { useQuery } from '@tanstack/react-query';
import type { Role } from '../../../contract/roles.ts';
import { applicationsQuery } from './queries.ts';

/** Weakest first, as in contract/roles.ts. */
const ROLE_ORDER = ['viewer', 'developer', 'admin', 'owner'] as const satisfies readonly Role[];

/** Undefined while the role is not known. */
export const useRole = (app: string): Role | undefined =>
  useQuery(applicationsQuery).data?.data.find(({ id }) => id === app)?.role;

export const isAtLeast = (role: Role | undefined, minRole: Role): boolean =>
  role !== undefined && ROLE_ORDER.indexOf(role) >= ROLE_ORDER.indexOf(minRole);

/** Converts the value of a select to a role. */
export const roleNamed = (name: string): Role => ROLE_ORDER.find(role => role === name) ?? 'viewer';
