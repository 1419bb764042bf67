// Reads the envelope of a long message in a worker thread, because reading 90 MB of small values takes a second.
import type { Job } from '../../kit/worker-pool.ts';
import { BadEnvelope, type Envelope, readEnvelope } from './envelope.ts';

/** The message is transferred to the thread and back, not copied. */
export interface MessageWithEnvelope {
  readonly message: Uint8Array;
  readonly readResult: Envelope | { readonly error: string; readonly code: number; readonly id: number | undefined };
}

/**
 * Reads the envelope of a message for the session `jobOwner`. The call detaches the buffer of the message. The result
 * contains the bytes of the message.
 */
export type LongMessageReader = (message: Buffer, jobOwner: string) => Promise<MessageWithEnvelope>;

/** The time limit of a job. Reading the largest message takes 1 s. */
const READ_TIMEOUT_MS = 20_000;

export const READ_ENVELOPE: Job<Uint8Array, MessageWithEnvelope> = {
  name: 'read a long message of a client',
  module: import.meta.url,
  limitMs: READ_TIMEOUT_MS,
};

export function work(message: Uint8Array): MessageWithEnvelope {
  try {
    return { message, readResult: readEnvelope(Buffer.from(message.buffer, message.byteOffset, message.byteLength)) };
  } catch (error) {
    if (!(error instanceof BadEnvelope)) throw error;
    return { message, readResult: { error: error.message, code: error.code, id: error.id } };
  }
}
