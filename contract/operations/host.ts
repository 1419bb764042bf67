// The machine, for its operator.
import { Host, HostExamination } from '../host.ts';
import type { Operation } from '../operation.ts';
import { READ_APPLICATIONS } from './shared.ts';

const FOR_OPERATOR = 'Only for the account of the first start, with a token that is not restricted to applications.';

export const HOST_OPERATIONS = {
  readHost: {
    tag: 'Service',
    method: 'GET',
    path: '/v1/operator/host',
    summary: 'Read the host',
    description: `Returns what the machine and the server process do now, and did in the last hours. ${FOR_OPERATOR}`,
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The host.', schema: Host } },
    errors: ['permission_denied'],
  },
  examineHost: {
    tag: 'Service',
    method: 'POST',
    path: '/v1/operator/host/examination',
    summary: 'Examine the host',
    description: `Checks what browsers need, as \`berth doctor\` does. Starts a browser for it, so it takes some seconds. Requests at the same time get the same answer. ${FOR_OPERATOR}`,
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: true,
    mount: 'native',
    responses: { 200: { description: 'The findings.', schema: HostExamination } },
    errors: ['permission_denied'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
