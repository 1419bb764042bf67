// Tracks whether the caller of a request is still connected. There is one listener for each response, however often the
// request is retried.
import type { ServerResponse } from 'node:http';

export interface CallerConnection {
  /** Aborted if the caller disconnects before it has received the response. */
  readonly gone: AbortSignal;
  /** Whether the response was written completely. */
  readonly arrived: Promise<boolean>;
}

const known = new WeakMap<ServerResponse, CallerConnection>();

export function callerConnection(answer: ServerResponse): CallerConnection {
  const connection = known.get(answer) ?? watch(answer);
  known.set(answer, connection);
  return connection;
}

function watch(answer: ServerResponse): CallerConnection {
  const gone = new AbortController();
  const left = (): void => gone.abort(new Error('the caller went away'));
  if (answer.destroyed && !answer.writableFinished) left();
  const arrived = new Promise<boolean>(resolve => {
    answer.once('close', () => {
      if (!answer.writableFinished) left();
      resolve(answer.writableFinished);
    });
  });
  return { gone: gone.signal, arrived };
}
