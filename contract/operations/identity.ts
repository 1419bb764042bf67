// How the consumers of an application sign in: configured by its members.
import { ApplicationParams } from '../applications.ts';
import { IfMatchHeader } from '../common.ts';
import { ApplicationIdentity, ReplaceIdentity } from '../consumers.ts';
import type { Operation } from '../operation.ts';
import { ETAG, READ_APPLICATIONS } from './shared.ts';

const IDENTITY = '/v1/applications/{appId}/identity';
const WRITE = ['identity:write'] as const;
const READ = [...READ_APPLICATIONS, ...WRITE] as const;

export const IDENTITY_OPERATIONS = {
  readIdentity: {
    tag: 'Consumers',
    method: 'GET',
    path: IDENTITY,
    summary: 'Read how consumers sign in',
    description: 'Returns the ways, origins and addresses that the application has registered.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The identity.', schema: ApplicationIdentity, headers: ETAG } },
    errors: ['not_found'],
  },
  replaceIdentity: {
    tag: 'Consumers',
    method: 'PUT',
    path: IDENTITY,
    summary: 'Replace how consumers sign in',
    description:
      'Replaces all of it: an absent field gets its default. Sessions of consumers continue. Requires the role admin.',
    credential: 'account',
    scopes: WRITE,
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    headers: IfMatchHeader,
    body: ReplaceIdentity,
    bodyExample: {
      hosted: { methods: ['passkey', 'email_code'], registration: 'open' },
      origins: ['https://shop.example'],
      redirectUris: ['https://shop.example/signed-in'],
    },
    responses: { 200: { description: 'The identity.', schema: ApplicationIdentity, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
