// The log of a session's browser, as a list, a stream or a HAR file.
import { type Static, Type } from 'typebox';
import { AnyObject, Time, Uuid } from './common.ts';

export const LOG_LIMIT_MAX = 10_000;
export const LOG_KINDS = ['console', 'network', 'page', 'command'] as const;
export type LogKind = (typeof LOG_KINDS)[number];

/**
 * The page number of entries that belong to no page: entries of the browser itself, and of service and shared workers.
 */
export const NO_PAGE = -1;

export const HAR_TYPE = 'application/har+json';

const Milliseconds = (description: string) =>
  Type.Number({
    description: `${description} Milliseconds since 1970. Taken from the browser where it reports a time.`,
  });

const RawBody = Type.String({ description: 'The same object as JSON text.' });

export const SessionLog = Type.Object(
  {
    method: Type.String({
      description:
        'Name of the CDP event, or of the CDP command that a client sent. Berth adds two: `Log.entriesDropped` reports how many entries of a kind were not stored and why; `Page.navigationBlocked` reports a refused navigation.',
    }),
    pageId: Type.Integer({
      description: 'Number of the page, as in replays. -1 for entries that belong to no page.',
    }),
    sessionId: Uuid('Id of the session.'),
    timestamp: Type.Optional(Milliseconds('When the entry was recorded.')),
    frameId: Type.Optional(Type.String({ description: 'CDP id of the frame.' })),
    loaderId: Type.Optional(Type.String({ description: 'CDP id of the document load.' })),
    request: Type.Optional(
      Type.Object(
        {
          params: AnyObject(
            'Parameters of the event or command. Values that were secret or too long are replaced by a note in brackets.',
          ),
          rawBody: RawBody,
          timestamp: Type.Optional(Milliseconds('When the entry was recorded.')),
        },
        { description: 'The event, or the command as it was sent.' },
      ),
    ),
    response: Type.Optional(
      Type.Object(
        {
          result: AnyObject('Result of the command, or `error` with its code and message.'),
          rawBody: RawBody,
          timestamp: Type.Optional(Milliseconds('When the browser responded to the command.')),
        },
        { description: 'The response to a command. Absent for events.' },
      ),
    ),
  },
  { description: 'An entry in the log of a session.' },
);
export type SessionLog = Static<typeof SessionLog>;

export const SessionLogsQuery = Type.Object({
  type: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: `Return only entries of this kind. Separate several with commas: \`${LOG_KINDS.join(',')}\`.`,
    }),
  ),
  pageId: Type.Optional(
    Type.Integer({
      minimum: NO_PAGE,
      maximum: 2 ** 31 - 1,
      description:
        'Return only entries of the page with this number. Use -1 for entries that belong to no page. Ignored for a HAR file.',
    }),
  ),
  from: Type.Optional(Time('Return only entries of this time or later. Ignored for a HAR file.')),
  to: Type.Optional(Time('Return only entries before this time. Ignored for a HAR file.')),
  after: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,16}$',
      description: 'Return only entries after this entry. Use the `x-next-after` header of the previous response.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LOG_LIMIT_MAX,
      default: LOG_LIMIT_MAX,
      description: 'Maximum number of entries to return. Ignored for a stream or a HAR file.',
    }),
  ),
  format: Type.Optional(
    Type.Enum(['json', 'har'], {
      default: 'json',
      description:
        '`har` returns the network entries as a HAR 1.2 file, as does the header `Accept: application/har+json`.',
    }),
  ),
});
export type SessionLogsQuery = Static<typeof SessionLogsQuery>;
