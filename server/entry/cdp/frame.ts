// The head of a WebSocket text frame from server to client (RFC 6455, 5.2): final, unmasked, whole message.

const FINAL_TEXT = 0x81;
const LENGTH_16 = 126;
const LENGTH_64 = 127;

export function frameHead(payloadBytes: number): Buffer {
  if (payloadBytes < LENGTH_16) return Buffer.from([FINAL_TEXT, payloadBytes]);
  if (payloadBytes < 65_536) return Buffer.from([FINAL_TEXT, LENGTH_16, payloadBytes >> 8, payloadBytes & 0xff]);
  const head = Buffer.alloc(10);
  head.writeUInt8(FINAL_TEXT, 0);
  head.writeUInt8(LENGTH_64, 1);
  head.writeBigUInt64BE(BigInt(payloadBytes), 2);
  return head;
}
