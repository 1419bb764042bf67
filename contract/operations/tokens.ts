// Tokens of accounts.
import { PageQuery } from '../common.ts';
import type { Operation } from '../operation.ts';
import { CreateToken, IssuedToken, MANAGE_TOKENS_SCOPE, Token, TokenPage, TokenParams } from '../tokens.ts';

export const TOKEN_OPERATIONS = {
  listTokens: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens',
    summary: 'List tokens',
    description:
      "The account's tokens, newest first; never the tokens themselves. Needs `account:tokens`; a token that is confined to applications sees itself and those that it has issued.",
    credential: 'account',
    scopes: [MANAGE_TOKENS_SCOPE],
    isWrite: false,
    mount: 'native',
    query: PageQuery,
    responses: { 200: { description: 'A page of tokens.', schema: TokenPage } },
    errors: [],
  },
  createToken: {
    tag: 'Tokens',
    method: 'POST',
    path: '/v1/account/tokens',
    summary: 'Issue a token',
    description:
      'With at most the rights of the calling token, usable from no other addresses and for no longer. The token is in this answer only. At most 100 living tokens per account.',
    credential: 'account',
    scopes: [MANAGE_TOKENS_SCOPE],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: CreateToken,
    bodyExample: { name: 'ci', scopes: ['applications:read', 'keys:write'] },
    secretFields: ['token'],
    responses: { 201: { description: 'The token, with its secret.', schema: IssuedToken } },
    errors: ['limit_reached'],
  },
  readCurrentToken: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens/current',
    summary: 'Read the calling token',
    description: 'The credential that this very request was made with.',
    credential: 'account',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The calling token.', schema: Token } },
    errors: [],
  },
  revokeToken: {
    tag: 'Tokens',
    method: 'DELETE',
    path: '/v1/account/tokens/{id}',
    summary: 'Revoke a token',
    description:
      'At once, in every process. A token may always revoke itself; others need `account:tokens`, and one that is confined to applications revokes only those that it has issued. A second time answers 404.',
    credential: 'account',
    isWrite: true,
    mount: 'native',
    params: TokenParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['permission_denied', 'not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
