// Whether bytes have their buffer to themselves, so that it can be moved or freed without taking other bytes along.

/** For lists of buffers to move: empty where other bytes share the buffer. */
export const wholeBufferOf = ({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
