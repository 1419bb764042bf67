// Reads the stream of session events. EventSource cannot send a credential, so the stream is read with fetch.
// Reconnects automatically, and continues after the last event.
import type { SessionEvent } from '../../../contract/events.ts';
import { ApiError } from './api-error.ts';
import { sendRequest } from './call.ts';

const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 15_000;

/** `broken`: the stream is opened again. `refused`: the service refused the stream, and it is not opened again. */
export type StreamState = 'connecting' | 'live' | 'broken' | 'refused' | 'over';

export interface ListenOptions {
  readonly app: string;
  /** If present, only the events of this session are read, starting with its first event. */
  readonly sessionId?: string;
  readonly onEvents: (events: readonly SessionEvent[]) => void;
  readonly onState: (state: StreamState) => void;
}

/**
 * Reads events, and reconnects after failures, until the signal is aborted, the session has ended, or access is refused.
 */
export async function listen(options: ListenOptions, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined;
  let retryDelayMs = RETRY_FIRST_MS;
  while (!signal.aborted) {
    options.onState('connecting');
    try {
      const response = await open(options, lastId, signal);
      // For the stream of a session, status 204 means that the session has ended. For the stream of an application, it
      // means that the service is stopping, so the console reconnects.
      if (options.sessionId !== undefined && response.status === 204) return options.onState('over');
      if (!response.body) throw new Error('the response has no body');
      options.onState('live');
      retryDelayMs = RETRY_FIRST_MS;
      for await (const event of eventsOf(response.body)) {
        lastId = event.id;
        options.onEvents([event]);
        if (options.sessionId !== undefined && event.type === 'session.ended') return options.onState('over');
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return options.onState('refused');
    }
    options.onState('broken');
    await pause(retryDelayMs, signal);
    retryDelayMs = Math.min(retryDelayMs * 2, RETRY_MAX_MS);
  }
}

function open({ app, sessionId }: ListenOptions, lastId: string | undefined, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
  return sessionId === undefined
    ? sendRequest('listEvents', { app, headers, signal })
    : sendRequest('listSessionEvents', { app, params: { id: sessionId }, headers, signal });
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<SessionEvent, void> {
  let incompletePiece = '';
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const pieces = (incompletePiece + value).split('\n\n');
    incompletePiece = pieces.pop() ?? '';
    for (const piece of pieces) {
      const data = piece.split('\n').find(line => line.startsWith('data: '));
      if (data) yield JSON.parse(data.slice('data: '.length)) as SessionEvent;
    }
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
