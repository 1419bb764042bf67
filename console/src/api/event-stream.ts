// Session events as they happen. The browser's own EventSource cannot send a credential, so the stream is read here; it
// comes back by itself, behind the last event that was seen.
import type { SessionEvent } from '../../../contract/events.ts';
import { ApiError } from './api-error.ts';
import { ask } from './call.ts';

const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 15_000;

export type StreamState = 'connecting' | 'live' | 'broken' | 'over';

export interface Listening {
  readonly app: string;
  /** Only this session's, from its first event on. */
  readonly sessionId?: string;
  readonly onEvents: (events: readonly SessionEvent[]) => void;
  readonly onState: (state: StreamState) => void;
}

/** Listens until the signal aborts, or the session is over. */
export async function listen(wish: Listening, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined;
  let waitMs = RETRY_FIRST_MS;
  while (!signal.aborted) {
    wish.onState('connecting');
    try {
      const response = await open(wish, lastId, signal);
      // A stream of an application has no end: a service that stops answers this way, and its successor goes on.
      if (wish.sessionId !== undefined && response.status === 204) return wish.onState('over');
      if (!response.body) throw new Error('the stream has no body');
      wish.onState('live');
      waitMs = RETRY_FIRST_MS;
      for await (const event of eventsOf(response.body)) {
        lastId = event.id;
        wish.onEvents([event]);
        if (wish.sessionId !== undefined && event.type === 'session.ended') return wish.onState('over');
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return wish.onState('broken');
    }
    wish.onState('broken');
    await pause(waitMs, signal);
    waitMs = Math.min(waitMs * 2, RETRY_MAX_MS);
  }
}

function open({ app, sessionId }: Listening, lastId: string | undefined, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
  return sessionId === undefined
    ? ask('listEvents', { app, headers, signal })
    : ask('listSessionEvents', { app, params: { id: sessionId }, headers, signal });
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<SessionEvent, void> {
  let rest = '';
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const pieces = (rest + value).split('\n\n');
    rest = pieces.pop() ?? '';
    for (const piece of pieces) {
      const data = piece.split('\n').find(line => line.startsWith('data: '));
      if (data) yield JSON.parse(data.slice('data: '.length)) as SessionEvent;
    }
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
