// Logs of sessions.

import { Type } from 'typebox';
import { AnyObject } from '../common.ts';
import { HAR_TYPE, SessionLog, SessionLogsQuery } from '../logs.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { UNBUFFERED_HEADERS } from './shared.ts';

export const LOG_OPERATIONS = {
  listSessionLogs: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/logs',
    summary: "Read a session's log",
    description: `Returns console, network and page events of every page, popup, frame and worker, and the commands of clients, as a JSON array, oldest first. Available for running and ended sessions; kept for 31 days after the end. Secrets are removed before entries are stored: credentials, cookies and typed text. With \`Accept: ${HAR_TYPE}\` or \`format=har\` the response is a HAR 1.2 file of the network entries. With \`Accept: text/event-stream\` the response is a stream of server-sent events, sent as they happen: \`id\` is the position in the log, \`event\` the method, \`data\` the entry. With \`Last-Event-ID\`, the stream continues after that entry; the header takes precedence over \`after\`. The stream is closed after the last entry of an ended session; a request that continues after that entry returns 204.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    query: SessionLogsQuery,
    responses: {
      200: {
        description: 'The entries.',
        schema: Type.Array(SessionLog),
        alternativeTypes: { [HAR_TYPE]: AnyObject('A HAR 1.2 file.') },
        streamDescription: 'The entries as they happen, until the session has ended.',
        headers: {
          'x-next-after':
            'Position of the last entry in the response. Pass it as `after` to get the entries that follow.',
          'x-logging':
            '`disabled`: the session was created with `logSession` false. `expired`: the session ended more than 31 days ago.',
          'content-disposition': 'File name of a HAR file.',
          ...UNBUFFERED_HEADERS,
        },
      },
      204: { description: 'The stream has ended. There are no further entries.' },
    },
    errors: ['not_found', 'stream_limit'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
