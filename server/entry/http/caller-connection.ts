// Tracks whether the caller of a request is still connected. There is one listener for each response, even if the
// request is retried.
import type { ServerResponse } from 'node:http';

export interface CallerConnection {
  /** Aborted if the caller disconnects before it has received the response. */
  readonly disconnectSignal: AbortSignal;
  /** Whether the response was written completely. */
  readonly whenDelivered: Promise<boolean>;
}

const connections = new WeakMap<ServerResponse, CallerConnection>();

export function callerConnection(outgoing: ServerResponse): CallerConnection {
  const connection = connections.get(outgoing) ?? watch(outgoing);
  connections.set(outgoing, connection);
  return connection;
}

function watch(outgoing: ServerResponse): CallerConnection {
  const disconnectController = new AbortController();
  const onDisconnect = (): void => disconnectController.abort(new Error('the caller has disconnected'));
  if (outgoing.destroyed && !outgoing.writableFinished) onDisconnect();
  const whenDelivered = new Promise<boolean>(resolve => {
    if (outgoing.destroyed) return resolve(outgoing.writableFinished); // `close` has already been emitted.
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) onDisconnect();
      resolve(outgoing.writableFinished);
    });
  });
  return { disconnectSignal: disconnectController.signal, whenDelivered };
}
