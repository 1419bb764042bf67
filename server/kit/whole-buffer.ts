// Finds a buffer that contains only the given bytes, so that the buffer can be transferred or freed without affecting
// other bytes.

/**
 * Returns a list that contains only the underlying buffer. The list is empty if the buffer also contains other bytes or
 * is shared.
 */
export const wholeBufferOf = ({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
