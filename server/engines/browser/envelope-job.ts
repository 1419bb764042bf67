// Reads the envelope of a long message in a worker thread: whoever sends 90 MB of small values chooses a second of work.
import type { Job } from '../../kit/worker-pool.ts';
import { BadEnvelope, type Envelope, readEnvelope } from './envelope.ts';

/** The message is moved to the thread and back, not copied. */
export interface ReadMessage {
  readonly message: Uint8Array;
  readonly read: Envelope | { readonly bad: string; readonly code: number; readonly id: number | undefined };
}

/** `of`: the session that the message is for. It is empty afterwards; the result has it. */
export type ReadLong = (message: Buffer, of: string) => Promise<ReadMessage>;

/** The largest message takes a second. */
const LIMIT_MS = 20_000;

export const READ_ENVELOPE: Job<Uint8Array, ReadMessage> = {
  name: 'read a long message of a client',
  module: import.meta.url,
  limitMs: LIMIT_MS,
};

export function work(message: Uint8Array): ReadMessage {
  try {
    return { message, read: readEnvelope(Buffer.from(message.buffer, message.byteOffset, message.byteLength)) };
  } catch (error) {
    if (!(error instanceof BadEnvelope)) throw error;
    return { message, read: { bad: error.message, code: error.code, id: error.id } };
  }
}
