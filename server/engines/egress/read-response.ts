// Reads the short response of a proxy from a socket. Parses the bytes received so far until the response is complete,
// and puts any bytes after the response back into the socket.
import type { Socket } from 'node:net';
import { guardListener } from '../../kit/guard.ts';
import { FailedError } from './failure.ts';

export interface ParsedResponse<T> {
  readonly value: T;
  /** The number of bytes that belong to the response. */
  readonly usedBytes: number;
}

/** Thrown if the proxy closed the connection without sending a byte. */
export class ClosedWithoutResponse extends Error {
  override readonly name = 'ClosedWithoutResponse';
}

export function readResponse<T>(
  socket: Socket,
  bytesMax: number,
  parse: (bytes: Buffer) => ParsedResponse<T> | undefined,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let bytes: Buffer = Buffer.alloc(0);
  const tryParse = (): void => {
    const parsedResponse = parse(bytes);
    if (!parsedResponse && bytes.length > bytesMax) throw new FailedError('bad_answer');
    if (!parsedResponse) return;
    stop();
    if (parsedResponse.usedBytes < bytes.length) socket.unshift(bytes.subarray(parsedResponse.usedBytes));
    resolve(parsedResponse.value);
  };
  // Listens to `readable`. A `data` listener would switch the socket to flowing mode, and the socket would have to be
  // paused for the next reader.
  const onReadable = guardListener(reject, () => {
    const part: unknown = socket.read();
    if (!Buffer.isBuffer(part)) return;
    bytes = Buffer.concat([bytes, part]);
    tryParse();
  });
  const onEnd = (): void =>
    reject(bytes.length === 0 ? new ClosedWithoutResponse('the connection was closed') : new FailedError('bad_answer'));
  const stop = (): void => {
    socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', reject);
  };
  socket.on('readable', onReadable).once('end', onEnd).once('close', onEnd).once('error', reject);
  return promise.finally(stop);
}
