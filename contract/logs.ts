// What happened inside a session's browser, as callers read it: as a list, as it happens, or as a HAR file.
import { type Static, Type } from 'typebox';
import { AnyObject, Uuid } from './common.ts';

export const LOG_LIMIT_MAX = 10_000;
export const LOG_KINDS = ['console', 'network', 'page', 'command'] as const;
export type LogKind = (typeof LOG_KINDS)[number];

/** Of entries that belong to no page: the browser itself, service and shared workers. */
export const NO_PAGE = -1;

export const HAR_TYPE = 'application/har+json';

const Milliseconds = (description: string) =>
  Type.Number({ description: `${description} Milliseconds since 1970, as the browser says them where it does.` });

const RawBody = Type.String({ description: 'The same as JSON text.' });

export const SessionLog = Type.Object(
  {
    method: Type.String({
      description:
        'The name of the CDP event, or of the CDP command that a client gave. `Log.entriesDropped` is ours: entries of its kind that were not kept, how many and why. `Page.navigationBlocked` is ours too.',
    }),
    pageId: Type.Integer({
      description: 'Number of the page, the same as in the replay; -1 for what belongs to no page.',
    }),
    sessionId: Uuid('The session.'),
    timestamp: Type.Optional(Milliseconds('When it happened.')),
    frameId: Type.Optional(Type.String({ description: 'CDP id of the frame.' })),
    loaderId: Type.Optional(Type.String({ description: 'CDP id of the load.' })),
    request: Type.Optional(
      Type.Object(
        {
          params: AnyObject('Parameters of the event or command. What was secret or too long says so in brackets.'),
          rawBody: RawBody,
          timestamp: Type.Optional(Milliseconds('When it happened.')),
        },
        { description: 'What was said.' },
      ),
    ),
    response: Type.Optional(
      Type.Object(
        {
          result: AnyObject('Result of the command, or `error` with its code and message.'),
          rawBody: RawBody,
          timestamp: Type.Optional(Milliseconds('When it was answered.')),
        },
        { description: 'Commands only: what was answered.' },
      ),
    ),
  },
  { description: 'An entry of the log of a session.' },
);
export type SessionLog = Static<typeof SessionLog>;

export const SessionLogsQuery = Type.Object({
  type: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: `Only entries of this kind; several with commas: \`${LOG_KINDS.join(',')}\`.`,
    }),
  ),
  after: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,16}$',
      description: 'Only entries behind this one: `x-next-after` of the answer before.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LOG_LIMIT_MAX,
      default: LOG_LIMIT_MAX,
      description: 'How many entries at most. Of no meaning for a stream or a HAR file.',
    }),
  ),
  format: Type.Optional(
    Type.Enum(['json', 'har'], {
      default: 'json',
      description: '`har`: the network part as a HAR 1.2 file, as `Accept: application/har+json` asks for too.',
    }),
  ),
});
export type SessionLogsQuery = Static<typeof SessionLogsQuery>;
