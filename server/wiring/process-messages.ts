// Messages between the processes of one machine and their supervisor.
import { guardListener } from '../kit/guard.ts';
import { parseAddresses, type ServerAddresses } from '../server-record.ts';

/** Notifies the supervisor that this process is serving. Does nothing in a server without a supervisor. */
export const sendReady = (addresses: ServerAddresses): void => void process.send?.({ berthReady: addresses });

export function parseReady(message: unknown): ServerAddresses | undefined {
  const readyMessage: { readonly berthReady?: unknown } = Object(message);
  return parseAddresses(readyMessage.berthReady);
}

/** Returns the message that reports the end and the restart of the process with this number. */
export const restartMessage = (number: number, endedAt: Date) => ({
  berthRestarts: number,
  endedAtMs: endedAt.getTime(),
});

/** Calls `onRestart` when the supervisor reports that a process is being restarted. */
export function onRestarts(
  onRestart: (number: number, endedAt: Date) => void,
  onFailure: (error: unknown) => void,
): { close(): void } {
  const messageListener = guardListener(onFailure, (message: unknown) => {
    const { berthRestarts: number, endedAtMs }: { readonly berthRestarts?: unknown; readonly endedAtMs?: unknown } =
      Object(message);
    if (typeof number === 'number' && typeof endedAtMs === 'number') onRestart(number, new Date(endedAtMs));
  });
  process.on('message', messageListener);
  return { close: () => void process.off('message', messageListener) };
}
