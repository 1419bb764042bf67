// What pages and browsers said.

import { Type } from 'typebox';
import { AnyObject } from '../common.ts';
import { HAR_TYPE, SessionLog, SessionLogsQuery } from '../logs.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { UNBUFFERED } from './shared.ts';

export const LOG_OPERATIONS = {
  listSessionLogs: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/logs',
    summary: "Read a session's log",
    description: `Console, network and page events of every page, popup, frame and worker, and the commands of clients: a bare array, oldest first, for running and ended sessions, kept for 31 days after the end. What was secret in it was taken out before it was stored: credentials, cookies, what was typed. With \`Accept: ${HAR_TYPE}\` or \`format=har\` it is a HAR 1.2 file of the network part. With \`Accept: text/event-stream\` the entries come as they happen, as server-sent events: \`id\` the place in the log, \`event\` the method, \`data\` the entry. \`Last-Event-ID\` goes on behind an entry, and wins over \`after\`. The stream is closed behind the last entry of a session that has ended; asked for again, it answers 204.`,
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
        otherTypes: { [HAR_TYPE]: AnyObject('A HAR 1.2 file.') },
        asStream: 'The entries as they happen, until the session has ended.',
        headers: {
          'x-next-after': 'Where this answer ends: pass it as `after`, at once or later, to get what follows.',
          'x-logging': '`disabled`: the session was made with `logSession` false. `expired`: 31 days have passed.',
          'content-disposition': 'Of a HAR file: its name.',
          ...UNBUFFERED,
        },
      },
      204: { description: 'The stream has ended: nothing follows.' },
    },
    errors: ['not_found', 'stream_limit'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
