// The usage of an application, over time and by agent key.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

/**
 * The length of a step in a usage response, in hours. Steps are aligned to UTC: `1h` to full hours, `6h` to 00:00,
 * 06:00, 12:00 and 18:00, and `1d` to midnight.
 */
export const USAGE_STEP_HOURS = { '1h': 1, '6h': 6, '1d': 24 } as const;
export const USAGE_STEPS_MAX = 800;
export const USAGE_KEYS_MAX = 100;
export const USAGE_RETENTION_DAYS = 400;
export const USAGE_DAYS_DEFAULT = 7;

const SUMMED_FIELDS = {
  created: Type.Integer({ description: 'Sessions that were created.' }),
  ended: Type.Integer({ description: 'Sessions that ended.' }),
  failed: Type.Integer({ description: 'Sessions that ended with the status `ERROR`.' }),
  browserSeconds: Type.Number({ description: 'Time during which sessions were running, summed over all sessions.' }),
  cpuSeconds: Type.Number({
    description: 'Processor time of the sessions that ended, over their whole life. 0 if the host does not measure it.',
  }),
  bytesReceived: Type.Integer({ description: 'Bytes received by the sessions that ended, over their whole life.' }),
  bytesSent: Type.Integer({ description: 'Bytes sent by the sessions that ended, over their whole life.' }),
};

const STEP_FIELDS = {
  startMsP50: Type.Optional(
    Type.Number({
      description:
        'Median time in milliseconds from the end of a wait in the queue until the browser is running. Estimated from a histogram. Absent if no session started.',
    }),
  ),
  startMsP95: Type.Optional(Type.Number({ description: '95th percentile of the same time, in milliseconds.' })),
  peakRunning: Type.Integer({ description: 'Largest number of sessions that were running at the same time.' }),
  endReasons: Type.Record(Type.String(), Type.Integer(), {
    description: 'Number of sessions that ended for each reason.',
  }),
};

export const UsageStep = Type.Object({ from: Time('When the step begins.'), ...SUMMED_FIELDS, ...STEP_FIELDS });
export type UsageStep = Static<typeof UsageStep>;

export const KeyUsage = Type.Object({
  keyId: Uuid('Id of the agent key.'),
  name: Type.Optional(Type.String({ description: 'Name of the key. Absent if it was deleted.' })),
  ...SUMMED_FIELDS,
});
export type KeyUsage = Static<typeof KeyUsage>;

export const ApplicationUsage = Type.Object(
  {
    from: Time('When the first step begins.'),
    to: Time('When the last step ends. May be in the future.'),
    step: Type.Enum(['1h', '6h', '1d']),
    total: Type.Object({ ...SUMMED_FIELDS, ...STEP_FIELDS }, { description: 'Totals of all steps.' }),
    steps: Type.Array(UsageStep, { description: 'All steps in order, including those without a session.' }),
    keys: Type.Array(KeyUsage, {
      description: `Usage by the agent key that created the sessions, at most ${USAGE_KEYS_MAX} keys, those with the most browser time first.`,
    }),
  },
  { description: 'The usage of an application.' },
);
export type ApplicationUsage = Static<typeof ApplicationUsage>;

export const UsageQuery = Type.Object({
  from: Type.Optional(
    Time(
      `Start of the period; the step that contains it is the first. Defaults to ${USAGE_DAYS_DEFAULT} days before \`to\`.`,
    ),
  ),
  to: Type.Optional(Time('End of the period; the step that contains it is the last. Defaults to now.')),
  step: Type.Optional(
    Type.Enum(['1h', '6h', '1d'], {
      default: '1d',
      description: `Length of a step. Steps are aligned to UTC. A period has at most ${USAGE_STEPS_MAX} steps.`,
    }),
  ),
});
export type UsageQuery = Static<typeof UsageQuery>;
