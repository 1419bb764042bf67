// Reads and writes local storage by origin, in the format of a Chromium profile. Storage of third-party frames is
// omitted, because the storage state format cannot express it.
import { Pace } from '../../kit/pace.ts';
import { readDatabase, writeDatabase } from './leveldb/database.ts';

/** The folder of local storage in an archive. */
export const LOCAL_STORAGE_FOLDER = 'Default/Local Storage/leveldb/';

export interface StoredOrigin {
  readonly origin: string;
  readonly items: ReadonlyMap<string, string>;
}

const [UTF16, LATIN1] = [0, 1] as const;
/** Matches a key of the form "_ORIGIN NUL ENCODING NAME". */
const ITEM = /^_([^\0]+)\0([\s\S]+)$/;
/** Microseconds from 1601, the epoch of Chromium's timestamps, to 1970, the Unix epoch. */
const EPOCH_MICROSECONDS = 11_644_473_600_000_000n;

export function readLocalStorage(archivedFiles: ReadonlyMap<string, Buffer>): readonly StoredOrigin[] {
  const files = new Map([...archivedFiles].map(([name, bytes]) => [name.slice(LOCAL_STORAGE_FOLDER.length), bytes]));
  const origins = new Map<string, Map<string, string>>();
  for (const [key, value] of readDatabase(files)) {
    const [, origin = '', name = ''] = ITEM.exec(key) ?? [];
    if (!isOrigin(origin)) continue;
    const items = origins.get(origin) ?? new Map<string, string>();
    origins.set(origin, items.set(decode(Buffer.from(name, 'latin1')), decode(value)));
  }
  return [...origins].map(([origin, items]) => ({ origin, items }));
}

/**
 * Returns the files of an archive that contains only this local storage. `now` is stored as the time of the last
 * change, because Chromium deletes local storage that has not changed for a long time.
 */
export async function writeLocalStorage(
  origins: readonly StoredOrigin[],
  now: Date,
): Promise<ReadonlyMap<string, Buffer>> {
  const pace = new Pace();
  const entries = new Map<string, Buffer>([['VERSION', Buffer.from('1')]]);
  for (const { origin, items } of origins) {
    let byteCount = 0;
    for (const [name, value] of items) {
      if (pace.isDue) await pace.rest();
      const [key, text] = [encode(name), encode(value)];
      byteCount += key.length + text.length;
      entries.set(`_${origin}\0${key.toString('latin1')}`, text);
    }
    entries.set(`META:${origin}`, metaOf(now, byteCount));
  }
  return new Map([...(await writeDatabase(entries))].map(([name, file]) => [`${LOCAL_STORAGE_FOLDER}${name}`, file]));
}

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

function decode(bytes: Buffer): string {
  const text = bytes.subarray(1);
  return bytes[0] === UTF16 ? text.toString('utf16le') : text.toString('latin1');
}

function encode(text: string): Buffer {
  const isLatin1 = !/[^\0-\xff]/.test(text);
  return Buffer.concat([Buffer.of(isLatin1 ? LATIN1 : UTF16), Buffer.from(text, isLatin1 ? 'latin1' : 'utf16le')]);
}

/** Returns a protocol buffer with field 1, the time of the last change, and field 2, the number of bytes. */
function metaOf(now: Date, bytes: number): Buffer {
  const modifiedMicroseconds = BigInt(now.getTime()) * 1000n + EPOCH_MICROSECONDS;
  return Buffer.concat([
    Buffer.of(0x08),
    bigVarintOf(modifiedMicroseconds),
    Buffer.of(0x10),
    bigVarintOf(BigInt(bytes)),
  ]);
}

function bigVarintOf(value: bigint): Buffer {
  const bytes: number[] = [];
  let remainingValue = value;
  for (; remainingValue >= 128n; remainingValue >>= 7n) bytes.push(Number(remainingValue & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(remainingValue)]);
}
