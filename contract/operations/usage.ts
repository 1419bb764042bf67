// The usage of an application.
import { ApplicationParams } from '../applications.ts';
import type { Operation } from '../operation.ts';
import { ApplicationUsage, USAGE_RETENTION_DAYS, UsageQuery } from '../usage.ts';
import { READ_APPLICATIONS_SCOPES } from './shared.ts';

export const USAGE_OPERATIONS = {
  readApplicationUsage: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications/{appId}/usage',
    summary: 'Read the usage over time',
    description: `Returns the sessions, failures, start times and resources in a period, by time step and by agent key. Hourly values are kept for ${USAGE_RETENTION_DAYS} days, which is longer than the sessions themselves are kept.`,
    credential: 'account',
    scopes: READ_APPLICATIONS_SCOPES,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: UsageQuery,
    responses: { 200: { description: 'The usage.', schema: ApplicationUsage } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
