// The host that handles the request, and all hosts of the fleet, for the operator.
import { Host, HostExamination } from '../host.ts';
import { DrainHost, HostList, HostParams, HostSessions, ListedHost } from '../hosts.ts';
import type { Operation } from '../operation.ts';
import { READ_APPLICATIONS_SCOPES } from './shared.ts';

const OPERATOR_ONLY =
  'Only for the account that was set up at the first start; a token must not be restricted to applications.';

export const HOST_OPERATIONS = {
  readHost: {
    tag: 'Service',
    method: 'GET',
    path: '/v1/operator/host',
    summary: 'Read the host',
    description: `Returns the current state of the machine and of the server process, and their resource use over the last few hours. ${OPERATOR_ONLY}`,
    credential: 'account',
    scopes: READ_APPLICATIONS_SCOPES,
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The host.', schema: Host } },
    errors: ['permission_denied'],
  },
  examineHost: {
    tag: 'Service',
    method: 'POST',
    path: '/v1/operator/host/examination',
    summary: 'Check the host',
    description: `Checks what browsers need, as \`berth doctor\` does. This starts a browser, so it takes a few seconds. Concurrent requests get the same response. ${OPERATOR_ONLY}`,
    credential: 'account',
    scopes: READ_APPLICATIONS_SCOPES,
    isWrite: true,
    mount: 'native',
    responses: { 200: { description: 'The findings.', schema: HostExamination } },
    errors: ['permission_denied'],
  },
  listHosts: {
    tag: 'Service',
    method: 'GET',
    path: '/v1/operator/hosts',
    summary: 'List hosts',
    description: `Returns the hosts that share the database, with their state and use. ${OPERATOR_ONLY}`,
    credential: 'account',
    scopes: READ_APPLICATIONS_SCOPES,
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The hosts.', schema: HostList } },
    errors: ['permission_denied'],
  },
  listHostSessions: {
    tag: 'Service',
    method: 'GET',
    path: '/v1/operator/hosts/{hostId}/sessions',
    summary: 'List the sessions on a host',
    description: `Returns the sessions of all applications that are running on the host, without their content. ${OPERATOR_ONLY}`,
    credential: 'account',
    scopes: READ_APPLICATIONS_SCOPES,
    isWrite: false,
    mount: 'native',
    params: HostParams,
    responses: { 200: { description: 'The sessions.', schema: HostSessions } },
    errors: ['permission_denied', 'not_found'],
  },
  drainHost: {
    tag: 'Service',
    method: 'PATCH',
    path: '/v1/operator/hosts/{hostId}',
    summary: 'Drain a host',
    description:
      'Sets whether the host gets new sessions, as `berth hosts drain` and `undrain` do. Sessions that are already running on the host continue. Only for the account that was set up at the first start, after a recent proof of identity.',
    credential: 'human',
    stepUp: true,
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: HostParams,
    body: DrainHost,
    bodyExample: { draining: true },
    responses: { 200: { description: 'The host.', schema: ListedHost } },
    errors: ['permission_denied', 'not_found', 'feature_unavailable'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
