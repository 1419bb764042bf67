// How the consumers of an application sign in, as configured by its members.
import { ApplicationParams } from '../applications.ts';
import { IfMatchHeader } from '../common.ts';
import {
  ApplicationIdentity,
  ConsumerProvider,
  ConsumerProviders,
  ProviderParams,
  ReplaceIdentity,
  WriteProvider,
} from '../consumers.ts';
import type { Operation } from '../operation.ts';
import { ETAG, READ_APPLICATIONS_SCOPES } from './shared.ts';

const IDENTITY_PATH = '/v1/applications/{appId}/identity';
const WRITE_SCOPES = ['identity:write'] as const;
const READ = [...READ_APPLICATIONS_SCOPES, ...WRITE_SCOPES] as const;

export const IDENTITY_OPERATIONS = {
  readIdentity: {
    tag: 'Consumers',
    method: 'GET',
    path: IDENTITY_PATH,
    summary: 'Read how consumers sign in',
    description: 'Returns the sign-in methods, origins and addresses that the application has registered.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The sign-in configuration.', schema: ApplicationIdentity, headers: ETAG } },
    errors: ['not_found'],
  },
  replaceIdentity: {
    tag: 'Consumers',
    method: 'PUT',
    path: IDENTITY_PATH,
    summary: 'Replace how consumers sign in',
    description:
      'Replaces the whole configuration: an absent field gets its default. Sessions of consumers continue. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
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
    responses: { 200: { description: 'The sign-in configuration.', schema: ApplicationIdentity, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
  listConsumerProviders: {
    tag: 'Consumers',
    method: 'GET',
    path: `${IDENTITY_PATH}/providers`,
    summary: 'List OpenID providers of consumers',
    description: 'Returns the providers other than `hosted`, without their secrets.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The providers.', schema: ConsumerProviders } },
    errors: ['not_found'],
  },
  readConsumerProvider: {
    tag: 'Consumers',
    method: 'GET',
    path: `${IDENTITY_PATH}/providers/{providerId}`,
    summary: 'Read an OpenID provider of consumers',
    description: 'Returns the provider without its secret.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ProviderParams,
    responses: { 200: { description: 'The provider.', schema: ConsumerProvider, headers: ETAG } },
    errors: ['not_found'],
  },
  writeConsumerProvider: {
    tag: 'Consumers',
    method: 'PUT',
    path: `${IDENTITY_PATH}/providers/{providerId}`,
    summary: 'Write an OpenID provider of consumers',
    description:
      'Reads the discovery document of the issuer, checks every address in it, and stores its content. `If-Match` is required if the provider already exists. Consumers of a different issuer are different consumers, even with the same subject. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ProviderParams,
    headers: IfMatchHeader,
    body: WriteProvider,
    bodyExample: {
      title: 'Acme',
      issuer: 'https://login.acme.example',
      clientId: 'shop',
      clientSecret: 'secret-of-the-client',
      scopes: ['profile'],
    },
    responses: {
      200: { description: 'The provider was replaced.', schema: ConsumerProvider, headers: ETAG },
      201: { description: 'The provider was added.', schema: ConsumerProvider, headers: ETAG },
    },
    errors: ['not_found', 'precondition_failed', 'precondition_required', 'limit_reached', 'upstream_failed'],
  },
  removeConsumerProvider: {
    tag: 'Consumers',
    method: 'DELETE',
    path: `${IDENTITY_PATH}/providers/{providerId}`,
    summary: 'Remove an OpenID provider of consumers',
    description:
      'Nobody can sign in with the provider any more. Sessions and consumers remain. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: ProviderParams,
    headers: IfMatchHeader,
    responses: { 204: { description: 'The provider was removed.' } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
