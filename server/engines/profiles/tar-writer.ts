// Writes tar entries of regular files. Their headers contain only name and size.

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const OCTAL_MAX = 8 ** 11;

/** Returns the header of a file. The content of the file must follow, and then `tarPadding`. */
export function tarHeader(name: string, size: number): Buffer {
  const hasShortHeader = Buffer.byteLength(name) <= NAME_BYTES && size < OCTAL_MAX;
  if (hasShortHeader) return headerBlock(name, size, '0');
  const pax = Buffer.from(`${paxRecord('path', name)}${paxRecord('size', String(size))}`);
  const fileHeader = headerBlock('long', Math.min(size, OCTAL_MAX - 1), '0');
  return Buffer.concat([headerBlock('pax', pax.length, 'x'), pax, tarPadding(pax.length), fileHeader]);
}

export const tarPadding = (size: number): Buffer => Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);

export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

function headerBlock(name: string, size: number, kind: string): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name, 0, NAME_BYTES);
  block.write('0000600\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write(kind, 156);
  block.write('ustar\0', 257);
  block.write('00', 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Returns a record of the form "LENGTH KEY=VALUE\n". The length includes its own digits. */
function paxRecord(key: string, value: string): string {
  const suffix = ` ${key}=${value}\n`;
  const suffixBytes = Buffer.byteLength(suffix);
  let length = suffixBytes + String(suffixBytes).length;
  if (suffixBytes + String(length).length !== length) length = suffixBytes + String(length).length;
  return `${length}${suffix}`;
}
