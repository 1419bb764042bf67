// Whether bytes occupy a whole buffer, so that it can be transferred or freed without affecting other bytes.

/** For lists of buffers to move: empty where other bytes share the buffer. */
export const wholeBufferOf = ({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
