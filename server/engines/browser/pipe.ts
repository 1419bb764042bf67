// The pipe to one Chromium: two named FIFOs. Chromium itself holds them open, so it can outlive this process. Messages
// are JSON terminated by a NUL. This file splits and joins messages, but does not parse them.
import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { loopWatch, type Work } from '../../kit/loop-watch.ts';
import { Scope } from '../../kit/scope.ts';
import { wholeBufferOf } from '../../kit/whole-buffer.ts';

/** The largest message from the browser that is accepted. A longer one is skipped and reported. */
const INCOMING_BYTES_MAX = 256 * 1024 ** 2;
/**
 * Maximum number of bytes that wait for a slow browser. When more bytes are waiting, commands from clients are refused.
 * The limit is larger than any single message.
 */
export const OUTGOING_WAITING_BYTES_MAX = 128 * 1024 ** 2;
const HIGH_WATER_BYTES = 4 * 1024 ** 2;
const READ_BUFFER_BYTES = 1024 ** 2;
const COPY_BYTES_MAX = 64 * 1024;
const NUL = Buffer.from([0]);

export interface PipeListener {
  message(message: Buffer): void;
  /** Called with the first and last bytes of a message that was longer than INCOMING_BYTES_MAX. */
  oversized(head: Buffer, tail: Buffer): void;
  /** Called when all messages of one read have been delivered. */
  batchEnd(): void;
  /** Called when the listener threw an error while it handled a message. The following messages are still delivered. */
  unreadable(error: unknown): void;
  failed(error: Error): void;
}

export class Pipe {
  readonly #incoming: Socket;
  readonly #outgoing: Socket;
  readonly #scope = new Scope();
  readonly #parts: Buffer[] = [];
  #partsBytes = 0;
  #skippedHead: Buffer | undefined;
  #skippedTail: Buffer = NUL;
  #sendQueue: Buffer[] = [];
  #unsentBytes = 0;
  #isFlushScheduled = false;
  #isClosed = false;
  #work: Work = { what: 'messages of a browser' };
  readonly #listener: PipeListener;

  constructor(fifoIn: string, fifoOut: string, listener: PipeListener) {
    this.#listener = listener;
    const fail = (error: Error): void => {
      if (!this.#isClosed) this.#listener.failed(error);
    };
    const buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
    this.#outgoing = openFifo(fifoIn, { writable: true, readable: false });
    this.#scope.defer(() => void this.#outgoing.destroy());
    this.#incoming = openFifo(fifoOut, {
      readable: true,
      writable: false,
      onread: {
        buffer,
        callback: (length: number) => {
          // The read buffer is reused, so it is copied once per read. Messages are slices of the copy.
          loopWatch.enter(this.#work);
          this.#split(Buffer.from(buffer.subarray(0, length)));
          loopWatch.leave();
          return true;
        },
      },
    });
    this.#scope.defer(() => void this.#incoming.destroy());
    this.#incoming.on('error', fail);
    this.#outgoing.on('error', fail);
    this.#incoming.on('close', () => fail(new Error('the pipe from the browser was closed')));
    this.#incoming.resume();
  }

  /** Whether so many bytes are waiting to be sent to Chromium that clients should pause. */
  get isFull(): boolean {
    return this.#outgoing.writableLength > HIGH_WATER_BYTES;
  }

  /** Sets the session id that is included in reports about slow handling. */
  setSessionId(sessionId: string): void {
    this.#work = { ...this.#work, sessionId };
  }

  get waitingBytes(): number {
    return this.#outgoing.writableLength + this.#unsentBytes;
  }

  onDrain(onDrained: () => void): void {
    this.#outgoing.once('drain', onDrained);
  }

  /**
   * Sends the parts as one message. The parts must not contain a NUL. Messages that are sent in one turn of the event
   * loop are written at once.
   */
  send(parts: readonly Buffer[]): void {
    if (this.#isClosed) return;
    if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      process.nextTick(this.#flush);
    }
    for (const part of parts) this.#queue(part);
    this.#queue(NUL);
  }

  /** Writes one NUL, which ends a message that a previous process may have written only in part. */
  endPartialMessage(): void {
    this.#outgoing.write(NUL);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#scope.close();
  }

  #queue(part: Buffer): void {
    this.#sendQueue.push(part);
    this.#unsentBytes += part.length;
  }

  /** Small messages are joined, so that one turn of the event loop needs one system call. */
  readonly #flush = (): void => {
    this.#isFlushScheduled = false;
    const unsentParts = this.#sendQueue;
    const unsentBytes = this.#unsentBytes;
    this.#sendQueue = [];
    this.#unsentBytes = 0;
    if (this.#isClosed) return;
    if (unsentBytes <= COPY_BYTES_MAX) {
      this.#outgoing.write(Buffer.concat(unsentParts, unsentBytes));
      return;
    }
    this.#outgoing.cork();
    for (const part of unsentParts) this.#outgoing.write(part);
    this.#outgoing.uncork();
  };

  #split(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0, from); end >= 0; end = chunk.indexOf(0, from)) {
      this.#finish(chunk.subarray(from, end));
      from = end + 1;
    }
    if (from < chunk.length) this.#bufferPart(chunk.subarray(from));
    try {
      this.#listener.batchEnd();
    } catch (error) {
      this.#listener.unreadable(error);
    }
  }

  /**
   * Delivers a message. An error that the listener throws for one message does not affect the following messages.
   * `guardListener` is not used, because it would allocate an array for each message.
   */
  #finish(lastPart: Buffer): void {
    try {
      this.#deliver(lastPart);
    } catch (error) {
      this.#listener.unreadable(error);
    }
  }

  #deliver(lastPart: Buffer): void {
    const head = this.#skippedHead;
    if (head) {
      this.#skippedHead = undefined;
      return this.#listener.oversized(head, Buffer.concat([this.#skippedTail, lastPart]).subarray(-256));
    }
    const message = this.#partsBytes === 0 ? lastPart : Buffer.concat([...this.#parts, lastPart]);
    if (this.#partsBytes > 0) this.#freeParts();
    if (message.length > 0) this.#listener.message(message);
  }

  #bufferPart(part: Buffer): void {
    if (this.#skippedHead) {
      this.#skippedTail = Buffer.concat([this.#skippedTail, part]).subarray(-256);
      return;
    }
    this.#parts.push(part);
    this.#partsBytes += part.length;
    if (this.#partsBytes <= INCOMING_BYTES_MAX) return;
    this.#skippedHead = Buffer.from((this.#parts[0] ?? NUL).subarray(0, 256));
    this.#skippedTail = Buffer.from(part.subarray(-256));
    this.#freeParts();
  }

  /**
   * Frees the memory at once. Leaving large messages to the garbage collector doubles the number of garbage collection
   * pauses.
   */
  #freeParts(): void {
    for (const part of this.#parts) for (const buffer of wholeBufferOf(part)) buffer.transfer(0);
    this.#parts.length = 0;
    this.#partsBytes = 0;
  }
}

/** Opens a FIFO with O_RDWR, so that neither side reads end-of-file while the other is being replaced. */
function openFifo(path: string, options: object): Socket {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  return new Socket({ fd: descriptor, ...options });
}
