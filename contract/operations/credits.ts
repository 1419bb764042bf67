// Credit: balance and reservations, entries of the ledger, usage with cost.
import { ApplicationParams } from '../applications.ts';
import { CreditEntryPage, CreditEntryQuery, Credits, CreditUsage, CreditUsageQuery } from '../credits.ts';
import type { Operation } from '../operation.ts';

const READ = {
  tag: 'Credit',
  method: 'GET',
  credential: 'account',
  scopes: ['credits:read'],
  isWrite: false,
  mount: 'native',
  params: ApplicationParams,
  errors: ['not_found'],
} as const;

export const CREDIT_OPERATIONS = {
  readCredits: {
    ...READ,
    path: '/v1/applications/{appId}/credits',
    summary: 'Read the credit',
    description:
      'Returns the balance of the account that the application bills, and the amount that is held for this application. Other applications of the account appear only in the totals. Requires the role viewer.',
    responses: { 200: { description: 'The credit.', schema: Credits } },
  },
  listCreditEntries: {
    ...READ,
    path: '/v1/applications/{appId}/credits/entries',
    summary: 'List ledger entries',
    description:
      'Returns the ledger entries for this application, newest first. Entries are kept forever. Requires the role viewer.',
    query: CreditEntryQuery,
    responses: { 200: { description: 'A page of entries.', schema: CreditEntryPage } },
  },
  readCreditUsage: {
    ...READ,
    path: '/v1/applications/{appId}/credits/usage',
    summary: 'Read usage and cost',
    description:
      'Returns browser time, network bytes, calls and cost in a period, by day, operation or agent key. Requires the role viewer.',
    query: CreditUsageQuery,
    responses: { 200: { description: 'The usage.', schema: CreditUsage } },
  },
} as const satisfies Readonly<Record<string, Operation>>;
