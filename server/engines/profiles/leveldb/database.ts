// Reads all current entries of a LevelDB from files in memory, or writes a new LevelDB. Chromium stores local storage
// in this format. Only the features that Chromium uses are supported: no snapshots, and only the bytewise comparator.
import { Pace } from '../../../kit/pace.ts';
import { ByteReader, LevelDbError, lengthPrefixedOf, varintOf } from './bytes.ts';
import { logFileOf, logRecords } from './log-file.ts';
import { tableEntries } from './table-file.ts';

const COMPARATOR = 'leveldb.BytewiseComparator';
const [DELETED, PUT] = [0, 1] as const;
const KEY_SUFFIX_BYTES = 8;
const BATCH_HEADER_BYTES = 12;
/**
 * Maximum total size of all entries after decompression, including overwritten entries. A small compressed block may
 * expand to many times its size.
 */
const ENTRIES_BYTES_MAX = 256 * 1024 ** 2;

/** Values by key. The bytes of the key are decoded as Latin-1. */
export type Entries = ReadonlyMap<string, Buffer>;

export function readDatabase(files: ReadonlyMap<string, Buffer>): Entries {
  const manifestName = files.get('CURRENT')?.toString('latin1').trim();
  const manifest = manifestName === undefined ? undefined : files.get(manifestName);
  if (!manifest) return new Map();
  const { tables, firstLog } = readManifest(manifest);
  const newestEntries = new NewestEntries();
  for (const [name, bytes] of files) {
    const [, digits, kind] = /^(\d+)\.(log|ldb|sst)$/.exec(name) ?? [];
    const number = Number(digits);
    if (kind === 'log' && number >= firstLog) for (const batch of logRecords(bytes)) readBatch(batch, newestEntries);
    else if (kind && kind !== 'log' && tables.has(number))
      for (const { key, value } of tableEntries(bytes)) newestEntries.addInternal(key, value);
  }
  return newestEntries.currentEntries();
}

/** Returns the files of a new database. */
export async function writeDatabase(entries: Entries): Promise<ReadonlyMap<string, Buffer>> {
  const edit = Buffer.concat([
    ...[varintOf(NAME), lengthPrefixedOf(Buffer.from(COMPARATOR))],
    ...[FIRST_LOG, LOG_NUMBER, NEXT_FILE, LOG_NUMBER + 1, LAST_SEQUENCE, 0].map(varintOf),
  ]);
  return new Map([
    ['CURRENT', Buffer.from('MANIFEST-000001\n')],
    ['MANIFEST-000001', logFileOf([edit])],
    [`${String(LOG_NUMBER).padStart(6, '0')}.log`, logFileOf([await batchOf(entries)])],
  ]);
}

const LOG_NUMBER = 2;

class NewestEntries {
  readonly #entries = new Map<string, { readonly number: bigint; readonly value: Buffer | undefined }>();
  #bytes = 0;

  add(key: Buffer, number: bigint, value: Buffer | undefined): void {
    this.#bytes += key.length + (value?.length ?? 0);
    if (this.#bytes > ENTRIES_BYTES_MAX)
      throw new LevelDbError(`the database has more than ${ENTRIES_BYTES_MAX} bytes of entries`);
    const name = key.toString('latin1');
    const existingEntry = this.#entries.get(name);
    if (!existingEntry || number >= existingEntry.number) this.#entries.set(name, { number, value });
  }

  addInternal(key: Buffer, value: Buffer): void {
    if (key.length < KEY_SUFFIX_BYTES) throw new LevelDbError('a key has no sequence number');
    const keySuffix = key.readBigUInt64LE(key.length - KEY_SUFFIX_BYTES);
    const isPut = Number(keySuffix & 0xffn) === PUT;
    this.add(key.subarray(0, -KEY_SUFFIX_BYTES), keySuffix >> 8n, isPut ? value : undefined);
  }

  currentEntries(): Entries {
    const pairs = [...this.#entries].flatMap(([key, { value }]) => (value ? [[key, value] as const] : []));
    return new Map(pairs);
  }
}

function readBatch(batch: Buffer, newest: NewestEntries): void {
  if (batch.length < BATCH_HEADER_BYTES) return;
  let sequenceNumber = batch.readBigUInt64LE();
  const source = new ByteReader(batch.subarray(BATCH_HEADER_BYTES));
  while (source.remaining > 0) {
    const kind = source.byte();
    const key = source.lengthPrefixed();
    if (kind !== PUT && kind !== DELETED) throw new LevelDbError(`a batch contains a record of unknown type ${kind}`);
    newest.add(key, sequenceNumber++, kind === PUT ? source.lengthPrefixed() : undefined);
  }
}

async function batchOf(entries: Entries): Promise<Buffer> {
  const header = Buffer.alloc(BATCH_HEADER_BYTES);
  header.writeBigUInt64LE(1n);
  header.writeUInt32LE(entries.size, 8);
  const parts: Buffer[] = [header];
  const pace = new Pace();
  for (const [key, value] of entries) {
    if (pace.isDue) await pace.rest();
    parts.push(Buffer.of(PUT), lengthPrefixedOf(Buffer.from(key, 'latin1')), lengthPrefixedOf(value));
  }
  return Buffer.concat(parts);
}

const [NAME, FIRST_LOG, NEXT_FILE, LAST_SEQUENCE, COMPACT_POINTER, REMOVED_TABLE, NEW_TABLE, PREVIOUS_LOG] = [
  1, 2, 3, 4, 5, 6, 7, 9,
] as const;

/** Reads the numbers of the current tables, and the number of the first log whose changes are not in a table yet. */
function readManifest(manifest: Buffer): { tables: ReadonlySet<number>; firstLog: number } {
  const tables = new Set<number>();
  let firstLog = 0;
  for (const edit of logRecords(manifest)) {
    const source = new ByteReader(edit);
    while (source.remaining > 0) {
      const tag = source.varint();
      if (tag === FIRST_LOG) firstLog = source.varint();
      else if (tag === REMOVED_TABLE) tables.delete(source.lastVarint(2));
      else if (tag === NEW_TABLE) addTableNumber(source, tables);
      else skipField(tag, source);
    }
  }
  return { tables, firstLog };
}

function skipField(tag: number, source: ByteReader): void {
  if (tag === NAME) source.lengthPrefixed();
  else if (tag === NEXT_FILE || tag === LAST_SEQUENCE || tag === PREVIOUS_LOG) source.varint();
  else if (tag === COMPACT_POINTER) {
    source.varint();
    source.lengthPrefixed();
  } else throw new LevelDbError(`the manifest contains an unknown tag: ${tag}`);
}

/** Adds the number of a table's file to the set. The level and this number are the first two fields of the entry. */
function addTableNumber(source: ByteReader, tables: Set<number>): void {
  tables.add(source.lastVarint(2));
  source.varint();
  source.lengthPrefixed();
  source.lengthPrefixed();
}
