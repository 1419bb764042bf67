// The log of a running service: pino on standard output, one JSON line per event. Values of the type `Secret` are
// printed as stars (kit/secret.ts). Fields with names such as `password` are printed as stars too, in case a secret is
// logged as plain text by mistake.
import { pino } from 'pino';
import type { Log, LogFields } from './kit/log.ts';

const REDACTED_NAMES = [
  'signingKey',
  'connectUrl',
  'authorization',
  'apiKey',
  'token',
  'key',
  'password',
  'secret',
  'cookie',
];

export function openLog(level: string): Log {
  const redact = { paths: REDACTED_NAMES.flatMap(name => [name, `*.${name}`]), censor: '***' };
  return wrap(pino({ level, base: null, messageKey: 'event', redact, timestamp: pino.stdTimeFunctions.isoTime }));
}

const wrap = (sink: pino.Logger): Log => ({
  debug: (event, fields) => sink.debug(loggableFields(fields), event),
  info: (event, fields) => sink.info(loggableFields(fields), event),
  warn: (event, fields) => sink.warn(loggableFields(fields), event),
  error: (event, fields) => sink.error(loggableFields(fields), event),
  with: fields => wrap(sink.child(loggableFields(fields))),
});

/** Renames an error to `err`, the only name under which pino serializes errors. */
function loggableFields(fields: LogFields | undefined): object {
  if (!fields || !(fields.error instanceof Error)) return fields ?? {};
  const { error, ...rest } = fields;
  return { ...rest, err: error };
}
