// Personal access tokens: credentials with which people's scripts manage accounts and applications. They cannot be used
// to open browsers.
import { type Static, Type } from 'typebox';
import { CredentialStatus } from './agent-keys.ts';
import { Name } from './applications.ts';
import { CidrAllow, Page, Time, Uuid } from './common.ts';

export const TOKENS_PER_ACCOUNT_MAX = 100;
export const TOKEN_LIFETIME_DAYS_DEFAULT = 90;
export const TOKEN_LIFETIME_DAYS_MAX = 366;

export const TOKEN_SCOPES = [
  'applications:read',
  'applications:write',
  'members:write',
  'keys:write',
  'operations:write',
  'credentials:write',
  'connections:write',
  'flows:write',
  'identity:write',
  'invocations:test',
  'reconciliations:write',
  'limits:write',
  'credits:read',
  'purchases:read',
  'handoffs:write',
  'audit:read',
  'account:tokens',
] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/**
 * Scopes for operations that do not exist yet. A token may already have them, so that it does not have to be replaced
 * later.
 */
export const RESERVED_TOKEN_SCOPES = [
  'connections:write',
  'flows:write',
  'invocations:test',
  'reconciliations:write',
  'purchases:read',
] as const satisfies readonly TokenScope[];

/** Allows listing, issuing and revoking tokens of the account. Cannot be granted to another token. */
export const MANAGE_TOKENS_SCOPE = 'account:tokens' satisfies TokenScope;

/** The scopes that a token needs if it is used to sign in to the web console. */
export const CONSOLE_SCOPES = [
  'applications:read',
  'applications:write',
  'members:write',
  'keys:write',
  'operations:write',
  'credentials:write',
  'limits:write',
  'credits:read',
  'audit:read',
  'account:tokens',
] as const satisfies readonly TokenScope[];
/** Lifetime of a sign-in link for the console, in hours. */
export const CONSOLE_LINK_LIFETIME_HOURS = 24;

export const Token = Type.Object(
  {
    id: Uuid('Id of the token.'),
    kind: Type.Enum(['personal', 'developer'], {
      description:
        '`personal` was issued by a person or a token; `developer` was issued to a device that a person approved.',
    }),
    name: Type.String(),
    prefix: Type.String({ description: 'First characters of the token, by which it can be recognized.' }),
    scopes: Type.Array(Type.String(), { description: 'Permissions of the token, limited by the role of its account.' }),
    applicationIds: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Ids of the applications that the token is restricted to. If absent, the token is valid for all applications, including future ones.',
      }),
    ),
    cidrAllow: Type.Array(Type.String(), {
      description:
        'Address ranges that the token may be used from. If the list is empty, the token may be used from any address.',
    }),
    status: CredentialStatus,
    createdAt: Time('When the token was issued.'),
    expiresAt: Type.Optional(Time('When the token expires.')),
    revokedAt: Type.Optional(Time('When the token was revoked.')),
    lastUsedAt: Type.Optional(Time('When the token was last used, to the minute.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'IP address of the last use.' })),
  },
  { description: 'A personal access token.' },
);
export type Token = Static<typeof Token>;

export const IssuedToken = Type.Object(
  {
    ...Token.properties,
    token: Type.String({
      description: 'The token itself. It is stored only as a hash and cannot be shown again: save it now.',
    }),
  },
  { description: 'A new personal access token.' },
);
export type IssuedToken = Static<typeof IssuedToken>;

export const CreateToken = Type.Object({
  name: Name('Display name.'),
  scopes: Type.Array(Type.Enum([...TOKEN_SCOPES]), {
    minItems: 1,
    maxItems: TOKEN_SCOPES.length,
    description: `Permissions of the token. Only scopes that the calling token has are allowed, and never \`account:tokens\` (list, issue and revoke tokens). Scopes without an effect so far: ${RESERVED_TOKEN_SCOPES.map(scope => `\`${scope}\``).join(', ')}.`,
  }),
  applicationIds: Type.Optional(
    Type.Array(Uuid('Id of an application.'), {
      minItems: 1,
      maxItems: 50,
      description:
        'Restrict the token to these applications. Defaults to all applications that the calling token may access.',
    }),
  ),
  expiresAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: `When the token expires. Must be in the future, at most ${TOKEN_LIFETIME_DAYS_MAX} days ahead and not after the expiry of the calling token. Defaults to ${TOKEN_LIFETIME_DAYS_DEFAULT} days from now.`,
    }),
  ),
  cidrAllow: Type.Optional(CidrAllow),
});
export type CreateToken = Static<typeof CreateToken>;

export const TokenPage = Page(Token);
export type TokenPage = Static<typeof TokenPage>;

export const RevokeSentToken = Type.Object({
  token: Type.String({ maxLength: 512, description: 'The token itself.' }),
  token_type_hint: Type.Optional(Type.String({ maxLength: 64, description: 'Ignored.' })),
});
export type RevokeSentToken = Static<typeof RevokeSentToken>;

export const TokenParams = Type.Object({ id: Uuid('Id of the token.') });
