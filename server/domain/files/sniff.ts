// Detects the media type of a file from its first bytes. For ZIP archives, and for text other than HTML, the
// file extension determines the type. The type is information for users only: no decision depends on it, and files are
// served with `nosniff`.

const SIGNATURES: ReadonlyArray<readonly [offset: number, hex: string, type: string]> = [
  [0, '25504446', 'application/pdf'],
  [0, '89504e470d0a1a0a', 'image/png'],
  [0, 'ffd8ff', 'image/jpeg'],
  [0, '474946383761', 'image/gif'],
  [0, '474946383961', 'image/gif'],
  [8, '57454250', 'image/webp'],
  [4, '6674797061766966', 'image/avif'],
  [0, '424d', 'image/bmp'],
  [0, '49492a00', 'image/tiff'],
  [0, '4d4d002a', 'image/tiff'],
  [0, '1f8b', 'application/gzip'],
  [0, '425a68', 'application/x-bzip2'],
  [0, 'fd377a585a00', 'application/x-xz'],
  [0, '28b52ffd', 'application/zstd'],
  [0, '377abcaf271c', 'application/x-7z-compressed'],
  [0, '526172211a07', 'application/vnd.rar'],
  [257, '7573746172', 'application/x-tar'],
  [0, '1a45dfa3', 'video/webm'],
  [8, '57415645', 'audio/wav'],
  [8, '41564920', 'video/x-msvideo'],
  [0, '4f676753', 'audio/ogg'],
  [0, '664c6143', 'audio/flac'],
  [0, '494433', 'audio/mpeg'],
  [0, 'fffb', 'audio/mpeg'],
  [4, '66747970', 'video/mp4'],
  [0, '0061736d', 'application/wasm'],
  [0, '53514c69746520666f726d6174203300', 'application/vnd.sqlite3'],
  [0, 'd0cf11e0a1b11ae1', 'application/x-ole-storage'],
];

/** Formats that are zip archives. */
const ZIP_TYPES: Readonly<Record<string, string>> = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  epub: 'application/epub+zip',
  jar: 'application/java-archive',
};

const TEXT_TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  json: 'application/json',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  md: 'text/markdown',
  ics: 'text/calendar',
  rtf: 'application/rtf',
  yaml: 'application/yaml',
  yml: 'application/yaml',
};

/** Number of bytes at the beginning of a file that are examined. */
export const SNIFFED_BYTES_MAX = 512;
const UNKNOWN_TYPE = 'application/octet-stream';

export function mimeTypeOf(head: Uint8Array, filename: string): string {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, SNIFFED_BYTES_MAX));
  const extension = /\.([a-z0-9]{1,8})$/i.exec(filename)?.[1]?.toLowerCase() ?? '';
  if (hasBytes(bytes, 0, '504b0304') || hasBytes(bytes, 0, '504b0506'))
    return ZIP_TYPES[extension] ?? 'application/zip';
  const matchingSignature = SIGNATURES.find(([offset, hex]) => hasBytes(bytes, offset, hex));
  if (matchingSignature) return matchingSignature[2];
  if (!isText(bytes)) return UNKNOWN_TYPE;
  if (/^\s*<(!doctype html|html)[\s>]/i.test(bytes.toString('latin1'))) return 'text/html';
  return TEXT_TYPES[extension] ?? 'text/plain';
}

const hasBytes = (bytes: Buffer, offset: number, hex: string): boolean =>
  bytes.subarray(offset, offset + hex.length / 2).toString('hex') === hex;

/** Whether there is at least one byte, and all bytes may occur in text. */
const isText = (bytes: Buffer): boolean =>
  bytes.length > 0 && bytes.every(byte => byte >= 0x20 || [0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte));
