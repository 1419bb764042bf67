// Agent keys: the credentials of programs that use browsers. Each key belongs to one application.
import { type Static, Type } from 'typebox';
import { Name } from './applications.ts';
import { CidrAllow, Page, Time, Uuid } from './common.ts';
import { Grants } from './grants.ts';

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
  description: 'Expired and revoked credentials stay in lists for 90 days.',
});

export const AgentKey = Type.Object(
  {
    id: Uuid('Id of the key.'),
    applicationId: Uuid('Id of the application that the key belongs to.'),
    name: Type.String(),
    prefix: Type.String({ description: 'First characters of the key, by which it can be recognized.' }),
    scopes: Type.Array(Type.String(), { description: 'Permissions of the key.' }),
    grants: Grants('Operations that the key may call, with the scopes `operations:discover` and `operations:invoke`.'),
    cidrAllow: Type.Array(Type.String(), {
      description:
        'Address ranges that the key may be used from. If the list is empty, the key may be used from any address.',
    }),
    status: CredentialStatus,
    revision: Type.Integer({ description: 'Increases with every change. The `ETag` is this number in double quotes.' }),
    createdAt: Time('When the key was issued.'),
    expiresAt: Type.Optional(Time('When the key expires.')),
    revokedAt: Type.Optional(Time('When the key was revoked.')),
    lastUsedAt: Type.Optional(Time('When the key was last used, to the minute.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'IP address of the last use.' })),
  },
  { description: 'An agent key: the credential of a program that uses browsers.' },
);
export type AgentKey = Static<typeof AgentKey>;

const Key = Type.String({
  description: 'The key itself. It is stored only as a hash and cannot be shown again: save it now.',
});

export const IssuedAgentKey = Type.Object({ ...AgentKey.properties, key: Key }, { description: 'A new agent key.' });
export type IssuedAgentKey = Static<typeof IssuedAgentKey>;

const ExpiresAt = Type.String({
  format: 'date-time',
  description: 'When the key expires. Must be in the future. By default the key does not expire.',
});

export const CreateAgentKey = Type.Object({
  name: Name('Display name.'),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...AGENT_KEY_SCOPES]), {
      minItems: 1,
      maxItems: AGENT_KEY_SCOPES.length,
      default: [...BROWSER_SCOPES],
      description:
        'Permissions of the key. `browsers:read`: list and read sessions. `browsers:write`: create, change and release sessions. `browsers:connect`: read `connectUrl` and control the browser. `browsers:files`: uploads, downloads and recordings. `operations:discover` and `operations:invoke`: list and call the operations that `grants` name. `invocations:read`: read the invocations and receipts of those operations. `actions:prepare` and `actions:execute`: ask people to approve calls, and execute what they approved. `handoffs:write`: ask people to take control of running sessions. The other scopes are reserved. Defaults to the four browser scopes.',
    }),
  ),
  grants: Type.Optional(
    Grants('Operations that the key may call. Defaults to none: the scopes for operations then have no effect.'),
  ),
  expiresAt: Type.Optional(ExpiresAt),
  cidrAllow: Type.Optional(CidrAllow),
});
export type CreateAgentKey = Static<typeof CreateAgentKey>;

export const ChangeAgentKey = Type.Object(
  {
    name: Type.Optional(Name('New display name.')),
    grants: Type.Optional(Grants('Replaces all grants.')),
    cidrAllow: Type.Optional(CidrAllow),
    expiresAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'New expiry. Must be in the future and earlier than the current expiry.',
      }),
    ),
  },
  { description: 'Omitted fields keep their values. Scopes cannot be changed: issue another key.' },
);
export type ChangeAgentKey = Static<typeof ChangeAgentKey>;

export const RevokeAgentKeyQuery = Type.Object({
  closeConnections: Type.Optional(
    Type.Enum(['true', 'false'], {
      default: 'true',
      description:
        'Close the connections that were opened with the key: CDP connections, live views and event streams.',
    }),
  ),
});
export type RevokeAgentKeyQuery = Static<typeof RevokeAgentKeyQuery>;

export const ROTATION_GRACE_SECONDS_DEFAULT = 3600;

export const RotateAgentKey = Type.Object({
  graceSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      default: ROTATION_GRACE_SECONDS_DEFAULT,
      description: 'Seconds for which the old key stays valid.',
    }),
  ),
});
export type RotateAgentKey = Static<typeof RotateAgentKey>;

export const AgentKeyPage = Page(AgentKey);
export type AgentKeyPage = Static<typeof AgentKeyPage>;

export const AgentKeyParams = Type.Object({ appId: Uuid('Id of the application.'), keyId: Uuid('Id of the key.') });
