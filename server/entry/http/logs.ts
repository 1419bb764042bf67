// HTTP handlers for logs. They respond with a JSON list, with a HAR file, or with a stream if the caller accepts one.
import { Readable } from 'node:stream';
import { HAR_TYPE, LOG_LIMIT_MAX } from '../../../contract/logs.ts';
import { invalidRequest } from '../../domain/faults.ts';
import type { Callers } from '../../domain/identity/callers.ts';
import type { KeyUses } from '../../domain/identity/key-uses.ts';
import type { LogQuery, LogState, Logs, NumberedLog } from '../../domain/logs/api.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { HandlerInput } from './bind.ts';
import { EVENT_STREAM, eventStream } from './event-stream.ts';
import { emptyResponse, type HttpResponse } from './http-response.ts';
import { jsonList } from './json-list.ts';

const ENTRY_ID = /^\d{1,16}$/;

export interface LogHandlerParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly logs: Logs;
  readonly callers: Pick<Callers, 'authenticate'>;
  readonly keyUses: Pick<KeyUses, 'hold'>;
}

export const logHandlers = (parts: LogHandlerParts) => ({
  listSessionLogs: async (input: HandlerInput<'listSessionLogs'>): Promise<HttpResponse> => {
    if (input.query.format === 'har' || (input.query.format === undefined && input.accepts.includes(HAR_TYPE)))
      return harFile(parts, input);
    return input.stream ? streamLogs(parts, input, input.stream) : listLogs(parts, input);
  },
});

async function listLogs(
  { logs }: LogHandlerParts,
  { caller, params, query }: HandlerInput<'listSessionLogs'>,
): Promise<HttpResponse> {
  const { limit = LOG_LIMIT_MAX } = query;
  const page = await logs.list(caller, params.id, { ...filterOf(query), limit });
  return {
    body: jsonList(page.entries),
    contentType: 'application/json; charset=utf-8',
    headers: {
      ...(page.nextAfter === undefined ? {} : { 'x-next-after': page.nextAfter }),
      ...stateHeader(page.state),
    },
  };
}

/** The first piece is produced before the response starts, so that a failure can be sent with its own status. */
async function harFile(
  { logs, log }: LogHandlerParts,
  { caller, params }: HandlerInput<'listSessionLogs'>,
): Promise<HttpResponse> {
  const { pieces, state } = await logs.har(caller, params.id);
  const body = Readable.from(pieces, { objectMode: false });
  body.on('error', error => log.info('logs.har_broken', { reason: reason(error) }));
  return {
    body,
    contentType: `${HAR_TYPE}; charset=utf-8`,
    headers: { 'content-disposition': `attachment; filename="${params.id}.har"`, ...stateHeader(state) },
  };
}

async function streamLogs(
  { logs, callers, keyUses, clock, log }: LogHandlerParts,
  input: HandlerInput<'listSessionLogs'>,
  { lastEventId }: { readonly lastEventId?: string },
): Promise<HttpResponse> {
  const query = { ...filterOf(input.query), ...readLastEventId(lastEventId) };
  const laterItems = logs.follow(input.caller, input.params.id, query, input.signal);
  const firstBatch = await laterItems.next();
  if (firstBatch.done) return { ...emptyResponse(), status: 204 }; // With any other status, EventSource would reconnect forever.
  const checkCredential = () => callers.authenticate(input.presented, 'agentKey');
  const watchCredential = (end: () => void) => keyUses.hold(input.caller, end);
  return {
    body: eventStream({
      firstItems: firstBatch.value,
      laterBatches: laterItems,
      toStreamedItem,
      checkCredential,
      watchCredential,
      clock,
      log,
    }),
    contentType: EVENT_STREAM,
    // Prevents a reverse proxy from buffering the stream.
    headers: { 'x-accel-buffering': 'no' },
  };
}

const toStreamedItem = ({ id, entry }: NumberedLog) => ({ id, type: entry.method, data: entry });

const filterOf = ({ after, type, pageId, from, to }: LogQuery): LogQuery => ({
  ...(after === undefined ? {} : { after }),
  ...(type === undefined ? {} : { type }),
  ...(pageId === undefined ? {} : { pageId }),
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});

const stateHeader = (state: LogState): Record<string, string> => (state === 'on' ? {} : { 'x-logging': state });

function readLastEventId(id: string | undefined): { after?: string } {
  if (!id) return {};
  if (!ENTRY_ID.test(id)) throw invalidRequest([{ path: 'last-event-id', message: 'is not the id of an entry' }]);
  return { after: id };
}
