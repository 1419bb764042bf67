// The hosts of a fleet, for their operator.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

/** Maximum number of sessions that are listed for one host. */
export const HOST_SESSIONS_MAX = 100;
export const HOSTS_LISTED_MAX = 1_000;
export const LISTED_HOST_STATES = ['alone', 'up', 'away', 'left', 'lost'] as const;

export const ListedHost = Type.Object(
  {
    id: Uuid('Id of the host.'),
    isThis: Type.Boolean({ description: 'Whether this host sent the response.' }),
    state: Type.Enum([...LISTED_HOST_STATES], {
      description:
        '`alone`: no other host uses its database. `up`: it is running. `away`: it is restarting, and keeps its sessions. `left`: it was stopped. `lost`: it did not renew its lease in time, and its sessions were ended.',
    }),
    draining: Type.Boolean({ description: 'Whether the host receives no new sessions.' }),
    region: Type.String(),
    labels: Type.Record(Type.String(), Type.String(), { description: 'The labels in `BERTH_HOST_LABELS`.' }),
    version: Type.Optional(Type.String({ description: 'Version of Berth.' })),
    url: Type.Optional(Type.String({ description: 'Address at which the other hosts reach this host.' })),
    slots: Type.Integer({
      description:
        'Maximum number of concurrent sessions on the host. If 0, the host only passes requests on to other hosts.',
    }),
    used: Type.Integer({ description: 'Sessions on the host that have not ended.' }),
    startedAt: Time('When the host was started.'),
    heardAt: Type.Optional(Time('When the host last renewed its lease.')),
  },
  { description: 'A host.' },
);
export type ListedHost = Static<typeof ListedHost>;

export const HostList = Type.Object({
  isAlone: Type.Boolean({ description: 'Whether no other host uses the same database.' }),
  data: Type.Array(ListedHost, { description: `Newest first, at most ${HOSTS_LISTED_MAX}.` }),
});
export type HostList = Static<typeof HostList>;

export const HostParams = Type.Object({ hostId: Uuid('Id of the host.') });

export const HostSessions = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Uuid('Id of the session.'),
      applicationId: Uuid('Id of the application that the session belongs to.'),
      applicationName: Type.String(),
      status: Type.Enum(['PENDING', 'RUNNING']),
      createdAt: Time('When the session was created.'),
      expiresAt: Time('When the time limit of the session is reached.'),
    }),
    { description: `Sessions that have not ended, newest first, at most ${HOST_SESSIONS_MAX}.` },
  ),
});
export type HostSessions = Static<typeof HostSessions>;

export const DrainHost = Type.Object(
  {
    draining: Type.Boolean({
      description: 'If true, the host receives no new sessions. If false, it receives new sessions again.',
    }),
  },
  { additionalProperties: false },
);
export type DrainHost = Static<typeof DrainHost>;
