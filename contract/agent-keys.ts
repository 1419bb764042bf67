// Agent keys: the credential of programs that use browsers. Each belongs to one application.
import { type Static, Type } from 'typebox';
import { Name } from './applications.ts';
import { CidrAllow, Page, Time, Uuid } from './common.ts';

export const AGENT_KEYS_PER_APPLICATION_MAX = 200;

export const BROWSER_SCOPES = ['browsers:read', 'browsers:write', 'browsers:connect', 'browsers:files'] as const;

export const AGENT_KEY_SCOPES = [
  ...BROWSER_SCOPES,
  'operations:discover',
  'operations:invoke',
  'actions:prepare',
  'actions:execute',
  'invocations:read',
  'purchases:write',
  'handoffs:write',
  'memory:use',
] as const;
export type AgentKeyScope = (typeof AGENT_KEY_SCOPES)[number];

export const CREDENTIAL_STATUSES = ['active', 'expired', 'revoked'] as const;

export const CredentialStatus = Type.Enum([...CREDENTIAL_STATUSES], {
  description: 'Expired and revoked ones stay listed for 90 days.',
});

export const AgentKey = Type.Object(
  {
    id: Uuid('The key.'),
    applicationId: Uuid('The application it belongs to.'),
    name: Type.String(),
    prefix: Type.String({ description: 'Its first characters, to recognise it by.' }),
    scopes: Type.Array(Type.String(), { description: 'What it may do.' }),
    cidrAllow: Type.Array(Type.String(), { description: 'Address ranges it may be used from; empty: any.' }),
    status: CredentialStatus,
    revision: Type.Integer({ description: 'Grows with every change; the `ETag` in quotes.' }),
    createdAt: Time('When it was issued.'),
    expiresAt: Type.Optional(Time('When it stops working by itself.')),
    revokedAt: Type.Optional(Time('When it was revoked.')),
    lastUsedAt: Type.Optional(Time('Last use, to the minute.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'Address of the last use.' })),
  },
  { description: 'The credential of a program that uses browsers.' },
);
export type AgentKey = Static<typeof AgentKey>;

const Key = Type.String({ description: 'The key itself. Shown this once and stored only as a hash: keep it now.' });

export const IssuedAgentKey = Type.Object({ ...AgentKey.properties, key: Key }, { description: 'A new agent key.' });
export type IssuedAgentKey = Static<typeof IssuedAgentKey>;

const ExpiresAt = Type.String({
  format: 'date-time',
  description: 'When it stops working by itself; in the future. Left out: never.',
});

export const CreateAgentKey = Type.Object({
  name: Name('For people.'),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...AGENT_KEY_SCOPES]), {
      minItems: 1,
      maxItems: AGENT_KEY_SCOPES.length,
      default: [...BROWSER_SCOPES],
      description:
        'What it may do: `browsers:read` list and read sessions; `browsers:write` create, change and release them; `browsers:connect` see `connectUrl` and drive the browser; `browsers:files` uploads, downloads, recordings. The others open families that are not offered yet. Left out: the four browser scopes.',
    }),
  ),
  expiresAt: Type.Optional(ExpiresAt),
  cidrAllow: Type.Optional(CidrAllow),
});
export type CreateAgentKey = Static<typeof CreateAgentKey>;

export const ChangeAgentKey = Type.Object(
  {
    name: Type.Optional(Name('The new name.')),
    cidrAllow: Type.Optional(CidrAllow),
    expiresAt: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only earlier than it was, and in the future.' }),
    ),
  },
  { description: 'Fields that are left out stay as they are. Scopes never change: issue another key.' },
);
export type ChangeAgentKey = Static<typeof ChangeAgentKey>;

export const RevokeAgentKeyQuery = Type.Object({
  closeConnections: Type.Optional(
    Type.Enum(['true', 'false'], {
      default: 'true',
      description: 'Close what is open under the key: CDP connections, live views, event streams.',
    }),
  ),
});
export type RevokeAgentKeyQuery = Static<typeof RevokeAgentKeyQuery>;

export const ROTATE_GRACE_DEFAULT_SECONDS = 3600;

export const RotateAgentKey = Type.Object({
  graceSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      default: ROTATE_GRACE_DEFAULT_SECONDS,
      description: 'Seconds for which the old key still works.',
    }),
  ),
});
export type RotateAgentKey = Static<typeof RotateAgentKey>;

export const AgentKeyPage = Page(AgentKey);
export type AgentKeyPage = Static<typeof AgentKeyPage>;

export const AgentKeyParams = Type.Object({ appId: Uuid('The application.'), keyId: Uuid('The key.') });
