// Finds a buffer that contains only the given bytes, so that the buffer can be transferred or freed without affecting
// other bytes.

/** Returns the buffer of the bytes in a list. The list is empty if the buffer also contains other bytes. */
export const wholeBufferOf = ({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
