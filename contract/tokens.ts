// Personal access tokens: the credential of people's scripts for accounts and applications. They open no browser.
import { type Static, Type } from 'typebox';
import { CredentialStatus } from './agent-keys.ts';
import { Name } from './applications.ts';
import { CidrAllow, Page, Time, Uuid } from './common.ts';

export const TOKENS_PER_ACCOUNT_MAX = 100;
export const TOKEN_LIFE_DEFAULT_DAYS = 90;
export const TOKEN_LIFE_MAX_DAYS = 366;

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

/** Lists, issues and revokes tokens of the account. Never handed on. */
export const MANAGE_TOKENS_SCOPE = 'account:tokens' satisfies TokenScope;

/** What the web console needs of the token that signs in to it. */
export const CONSOLE_SCOPES = [
  'applications:read',
  'applications:write',
  'keys:write',
  'limits:write',
  'account:tokens',
] as const satisfies readonly TokenScope[];
/** How long a link that signs in to the console works. */
export const CONSOLE_LINK_HOURS = 24;

export const Token = Type.Object(
  {
    id: Uuid('The token.'),
    kind: Type.Enum(['personal']),
    name: Type.String(),
    prefix: Type.String({ description: 'Its first characters, to recognise it by.' }),
    scopes: Type.Array(Type.String(), { description: 'What it may do, within the role of its account.' }),
    applicationIds: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The applications it is confined to. Absent: all, present and future.',
      }),
    ),
    cidrAllow: Type.Array(Type.String(), { description: 'Address ranges it may be used from; empty: any.' }),
    status: CredentialStatus,
    createdAt: Time('When it was issued.'),
    expiresAt: Type.Optional(Time('When it stops working by itself.')),
    revokedAt: Type.Optional(Time('When it was revoked.')),
    lastUsedAt: Type.Optional(Time('Last use, to the minute.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'Address of the last use.' })),
  },
  { description: 'A personal access token.' },
);
export type Token = Static<typeof Token>;

export const IssuedToken = Type.Object(
  {
    ...Token.properties,
    token: Type.String({ description: 'The token itself. Shown this once and stored only as a hash: keep it now.' }),
  },
  { description: 'A new personal access token.' },
);
export type IssuedToken = Static<typeof IssuedToken>;

export const CreateToken = Type.Object({
  name: Name('For people.'),
  scopes: Type.Array(Type.Enum([...TOKEN_SCOPES]), {
    minItems: 1,
    maxItems: TOKEN_SCOPES.length,
    description:
      'What it may do. At most what the calling token may, and never `account:tokens`, which lists, issues and revokes tokens. Those that are in use now: `applications:read`, `applications:write`, `keys:write`, `limits:write`.',
  }),
  applicationIds: Type.Optional(
    Type.Array(Uuid('An application.'), {
      minItems: 1,
      maxItems: 50,
      description: 'Confine it to these applications. Left out: all that the calling token may reach.',
    }),
  ),
  expiresAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: `In the future, at most ${TOKEN_LIFE_MAX_DAYS} days ahead. Left out: in ${TOKEN_LIFE_DEFAULT_DAYS} days. Never later than the end of the calling token.`,
    }),
  ),
  cidrAllow: Type.Optional(CidrAllow),
});
export type CreateToken = Static<typeof CreateToken>;

export const TokenPage = Page(Token);
export type TokenPage = Static<typeof TokenPage>;

export const TokenParams = Type.Object({ id: Uuid('The token.') });
