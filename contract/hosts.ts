// The hosts that serve as one, for their operator.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

/** Of one host, newest first. */
export const HOST_SESSIONS_MAX = 100;
export const HOSTS_LISTED_MAX = 1_000;
export const LISTED_HOST_STATES = ['alone', 'up', 'away', 'left', 'lost'] as const;

export const ListedHost = Type.Object(
  {
    id: Uuid('Id of the host.'),
    isThis: Type.Boolean({ description: 'Whether this host has answered.' }),
    state: Type.Enum([...LISTED_HOST_STATES], {
      description:
        '`alone`: it shares its database with no other. `up`: it runs. `away`: it restarts, and keeps its sessions. `left`: it was stopped. `lost`: it was not heard of in time, and its sessions were ended.',
    }),
    draining: Type.Boolean({ description: 'It gets no more sessions.' }),
    region: Type.String(),
    labels: Type.Record(Type.String(), Type.String(), { description: '`BERTH_HOST_LABELS`.' }),
    version: Type.Optional(Type.String({ description: 'Version of Berth.' })),
    url: Type.Optional(Type.String({ description: 'Where the other hosts reach it.' })),
    slots: Type.Integer({ description: 'Sessions that may run on it at once. 0: it passes requests on.' }),
    used: Type.Integer({ description: 'Sessions on it that have not ended.' }),
    startedAt: Time('When it was started.'),
    heardAt: Type.Optional(Time('When it last renewed its lease.')),
  },
  { description: 'A host.' },
);
export type ListedHost = Static<typeof ListedHost>;

export const HostList = Type.Object({
  isAlone: Type.Boolean({ description: 'Whether no other host serves with this one.' }),
  data: Type.Array(ListedHost, { description: `Newest first, at most ${HOSTS_LISTED_MAX}.` }),
});
export type HostList = Static<typeof HostList>;

export const HostParams = Type.Object({ hostId: Uuid('Id of the host.') });

export const HostSessions = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Uuid('Id of the session.'),
      applicationId: Uuid('Id of its application.'),
      applicationName: Type.String(),
      status: Type.Enum(['PENDING', 'RUNNING']),
      createdAt: Time('When it was created.'),
      expiresAt: Time('When its time limit is reached.'),
    }),
    { description: `Sessions that have not ended, newest first, at most ${HOST_SESSIONS_MAX}.` },
  ),
});
export type HostSessions = Static<typeof HostSessions>;

export const DrainHost = Type.Object(
  { draining: Type.Boolean({ description: 'True: it gets no more sessions. False: it gets sessions again.' }) },
  { additionalProperties: false },
);
export type DrainHost = Static<typeof DrainHost>;
