// Encodes WebSocket text frames from server to client (RFC 6455, 5.2): final, unmasked, one message each.

const FINAL_TEXT = 0x81;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const LENGTH_16_MAX = 0xffff;
const UINT32 = 2 ** 32;

/** Encodes all messages as frames in one buffer, so that they are sent in one write. */
export function textFrames(messages: readonly Buffer[]): Buffer {
  let bytes = 0;
  for (const { length } of messages) bytes += headerBytesOf(length) + length;
  const frames = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const message of messages) {
    at = writeHeader(frames, at, message.length);
    frames.set(message, at);
    at += message.length;
  }
  return frames;
}

/** Returns the frame header for a message that is written separately. */
export function frameHeader(payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(headerBytesOf(payloadBytes));
  writeHeader(head, 0, payloadBytes);
  return head;
}

const headerBytesOf = (payloadBytes: number): number =>
  payloadBytes < LENGTH_16 ? 2 : payloadBytes <= LENGTH_16_MAX ? 4 : 10;

/** Writes a frame header. Returns the offset of the payload. */
function writeHeader(target: Buffer, at: number, payloadBytes: number): number {
  target[at] = FINAL_TEXT;
  if (payloadBytes < LENGTH_16) {
    target[at + 1] = payloadBytes;
    return at + 2;
  }
  if (payloadBytes <= LENGTH_16_MAX) {
    target[at + 1] = LENGTH_16;
    return target.writeUInt16BE(payloadBytes, at + 2);
  }
  target[at + 1] = LENGTH_64;
  target.writeUInt32BE(Math.floor(payloadBytes / UINT32), at + 2);
  return target.writeUInt32BE(payloadBytes % UINT32, at + 6);
}
