// Whether bytes occupy a whole buffer, so that it can be transferred or freed without affecting other bytes.

/** Returns a list of buffers to transfer, which is empty if other bytes share the buffer. */
export const wholeBufferOf = ({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
