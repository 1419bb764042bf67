// Reads the few bytes with which a proxy answers before a connection is somebody else's: all that came is looked at
// until it is enough, and what came too much goes back into the socket.
import type { Socket } from 'node:net';
import { guarded } from '../../kit/guard.ts';
import { Failed } from './failure.ts';

export interface Taken<T> {
  readonly value: T;
  /** Bytes that belong to the answer. */
  readonly used: number;
}

/** The other side ended the connection without having said a word. */
export class ClosedSilently extends Error {
  override readonly name = 'ClosedSilently';
}

export function readAnswer<T>(
  socket: Socket,
  bytesMax: number,
  take: (bytes: Buffer) => Taken<T> | undefined,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let bytes: Buffer = Buffer.alloc(0);
  const look = (): void => {
    const taken = take(bytes);
    if (!taken && bytes.length > bytesMax) throw new Failed('bad_answer');
    if (!taken) return;
    stop();
    if (taken.used < bytes.length) socket.unshift(bytes.subarray(taken.used));
    resolve(taken.value);
  };
  // Not `data`: once that was listened to, the socket would have to be paused, and nobody would set it going again.
  const onReadable = guarded(reject, () => {
    const part: unknown = socket.read();
    if (!Buffer.isBuffer(part)) return;
    bytes = Buffer.concat([bytes, part]);
    look();
  });
  const onEnd = (): void =>
    reject(bytes.length === 0 ? new ClosedSilently('the connection was ended') : new Failed('bad_answer'));
  const stop = (): void => {
    socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', reject);
  };
  socket.on('readable', onReadable).once('end', onEnd).once('close', onEnd).once('error', reject);
  return promise.finally(stop);
}
