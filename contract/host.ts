// The machine that the service runs on, for its operator.
import { type Static, Type } from 'typebox';
import { Time } from './common.ts';
import { Check } from './service.ts';

export const HOST_SAMPLES_MAX = 360;

export const HostSample = Type.Object({
  at: Time('When the reading was taken.'),
  cpuShare: Type.Number({
    description: 'Share of processor time in use since the previous reading, from 0 to 1.',
  }),
  memoryUsedBytes: Type.Integer({ description: 'Memory in use on the machine, or in its container.' }),
  serverBytes: Type.Integer({ description: 'Memory of the server process, without its database and browsers.' }),
  slotsUsed: Type.Integer({ description: 'Number of browsers, including those that are warm, starting or ending.' }),
  sessions: Type.Integer({ description: 'Sessions that are running in this process.' }),
  warm: Type.Integer({ description: 'Number of warm browsers.' }),
  waiting: Type.Integer({ description: 'Number of queued creates.' }),
  clients: Type.Integer({ description: 'Number of connected CDP clients.' }),
  diskFreeBytes: Type.Integer({ description: 'Free space on the disk that holds the data folder.' }),
});
export type HostSample = Static<typeof HostSample>;

export const Host = Type.Object(
  {
    version: Type.String({ description: 'Version of Berth.' }),
    nodeVersion: Type.String({ description: 'Version of Node.' }),
    startedAt: Time('When the server was started.'),
    processors: Type.Integer(),
    memoryBytes: Type.Integer({ description: 'Memory of the machine, or the limit of its container.' }),
    sessionsMax: Type.Integer({ description: 'Maximum number of concurrent sessions: `BERTH_SLOTS`.' }),
    isolation: Type.String({
      description: '`root` or `rootless`: each browser is in a jail. `process`: browsers are not in a jail.',
    }),
    missing: Type.Array(Type.String(), { description: 'Protections that this machine does not have.' }),
    engines: Type.Array(Type.String(), { description: 'Engines that this machine can run.' }),
    now: HostSample,
    samples: Type.Array(HostSample, {
      description: `Readings taken about once a minute since the server was started, oldest first, at most ${HOST_SAMPLES_MAX}.`,
    }),
    checks: Type.Array(Check, { description: 'The same checks as in `/readyz` of the operator’s listener.' }),
  },
  {
    description:
      'The machine and the server process: their current state, and their resource use over the last few hours.',
  },
);
export type Host = Static<typeof Host>;

export const HostExamination = Type.Object(
  {
    findings: Type.Array(
      Type.Object({
        name: Type.String(),
        ok: Type.Boolean(),
        required: Type.Boolean({ description: 'Whether sessions need this in order to run.' }),
        detail: Type.String(),
        cure: Type.String({ description: 'How the operator can meet the requirement. Empty if `ok`.' }),
      }),
    ),
  },
  { description: 'The findings of `berth doctor` for the machine.' },
);
export type HostExamination = Static<typeof HostExamination>;
