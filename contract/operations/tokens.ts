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
      'Returns the tokens of the account, newest first. The tokens themselves are never returned. Requires `account:tokens`. A token that is restricted to applications sees only itself and the tokens that it has issued.',
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
      'The new token can have at most the permissions, address ranges and lifetime of the calling token. The token itself is returned only in this response. At most 100 active tokens per account.',
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
    description: 'Returns the token that this request was sent with.',
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
      'Takes effect at once, in every process. A token may always revoke itself. Revoking another token requires `account:tokens`; a token that is restricted to applications can revoke only tokens that it has issued. Revoking a token twice returns 404.',
    credential: 'account',
    isWrite: true,
    mount: 'native',
    params: TokenParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['permission_denied', 'not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
