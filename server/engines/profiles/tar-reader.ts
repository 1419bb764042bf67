// Reads an untrusted tar, one entry after the other, with bounded memory. Supports the output of GNU tar in pax format.
// Entries that are not files are reported with their kind, and their bodies are skipped.
import { Chunks } from './chunks.ts';

const BLOCK_BYTES = 512;
/** Maximum size of a pax header, which contains a name. */
const PAX_BYTES_MAX = 64 * 1024;

export type EntryKind = 'file' | 'folder' | 'link' | 'symbolic link' | 'device' | 'pipe' | 'other';

export interface TarEntry {
  readonly name: string;
  readonly kind: EntryKind;
  readonly size: number;
  /** Must be read before the next entry is requested, because the request skips the unread bytes. */
  readonly body: AsyncIterable<Buffer>;
}

export class TarError extends Error {
  override readonly name = 'TarError';
}

/** The tar ends too early. If a process writes it, the process may have been killed, and a retry may succeed. */
export class TarTruncatedError extends TarError {
  constructor() {
    super('the tar is truncated');
  }
}

/** Yields the entries of a tar. `bytesMax` limits the size of the whole tar, including headers and skipped bodies. */
export async function* readTarEntries(source: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<TarEntry, void> {
  const blocks = new Blocks(limitBytes(source, bytesMax));
  try {
    yield* entriesOf(blocks);
  } finally {
    await blocks.close();
  }
}

async function* entriesOf(blocks: Blocks): AsyncGenerator<TarEntry, void> {
  let pax: ReadonlyMap<string, string> = new Map();
  for (let header = await blocks.header(); header; header = await blocks.header()) {
    const { kind, size: ownSize, name: ownName } = header;
    if (kind === 'x') pax = parsePax(await blocks.readSmall(ownSize));
    else if (kind === 'g') await blocks.readSmall(ownSize);
    else {
      const size = pax.has('size') ? parseWholeNumber(pax.get('size')) : ownSize;
      const body = blocks.body(size);
      yield { name: pax.get('path') ?? ownName, kind: KINDS[kind] ?? 'other', size, body };
      for await (const _ of body);
      await blocks.skip(paddingOf(size));
      pax = new Map();
    }
  }
}

const KINDS: Readonly<Record<string, EntryKind>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'symbolic link',
  '3': 'device',
  '4': 'device',
  '5': 'folder',
  '6': 'pipe',
};

class Blocks {
  readonly #source: AsyncGenerator<Buffer, void>;
  readonly #bufferedBytes = new Chunks();

  constructor(source: AsyncGenerator<Buffer, void>) {
    this.#source = source;
  }

  /** Closes the source, even if it was not read to its end. */
  async close(): Promise<void> {
    await this.#source.return();
  }

  /**
   * Reads the next header. A block of zeros ends the tar: in this case, reads the rest of the source, which must also
   * consist of zeros, and returns undefined.
   */
  async header(): Promise<{ name: string; kind: string; size: number } | undefined> {
    const block = await this.#readExactly(BLOCK_BYTES);
    if (!block.every(byte => byte === 0)) return parseHeader(block);
    do {
      const trailingBytes = this.#bufferedBytes.read(this.#bufferedBytes.length);
      if (trailingBytes.some(byte => byte !== 0)) throw new TarError('the tar archive has data after its end marker');
    } while (await this.#readMore());
    return undefined;
  }

  async readSmall(size: number): Promise<Buffer> {
    if (size > PAX_BYTES_MAX)
      throw new TarError(`a pax header is too large: ${size} bytes; the limit is ${PAX_BYTES_MAX} bytes`);
    const bytes = await this.#readExactly(size);
    await this.skip(paddingOf(size));
    return bytes;
  }

  async *body(size: number): AsyncGenerator<Buffer, void> {
    for (let remainingBytes = size; remainingBytes > 0; ) {
      if (this.#bufferedBytes.length === 0 && !(await this.#readMore())) throw new TarTruncatedError();
      const part = this.#bufferedBytes.read(Math.min(remainingBytes, this.#bufferedBytes.length));
      remainingBytes -= part.length;
      yield part;
    }
  }

  async skip(bytes: number): Promise<void> {
    await this.#readExactly(bytes);
  }

  async #readExactly(length: number): Promise<Buffer> {
    while (this.#bufferedBytes.length < length) if (!(await this.#readMore())) throw new TarTruncatedError();
    return this.#bufferedBytes.read(length);
  }

  async #readMore(): Promise<boolean> {
    const nextPart = await this.#source.next();
    if (!nextPart.done) this.#bufferedBytes.add(nextPart.value);
    return !nextPart.done;
  }
}

async function* limitBytes(source: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  for await (const part of source) {
    bytes += part.length;
    if (bytes > bytesMax) throw new TarError(`the tar archive has more than ${bytesMax} bytes`);
    yield part;
  }
}

const paddingOf = (size: number): number => (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;

function parseHeader(block: Buffer): { name: string; kind: string; size: number } {
  const expectedSum = parseOctal(block.subarray(148, 156));
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  if (expectedSum !== sum) throw new TarError('a tar header has a wrong checksum');
  const namePrefix = text(block.subarray(345, 500));
  const name = text(block.subarray(0, 100));
  return {
    name: namePrefix === '' ? name : `${namePrefix}/${name}`,
    kind: String.fromCharCode(block.readUInt8(156)),
    size: parseOctal(block.subarray(124, 136)),
  };
}

/**
 * Parses an octal number. Sizes of 8 GiB and more are in the pax header instead. The older binary format for such sizes
 * is not supported, because GNU tar does not use it in pax format.
 */
const parseOctal = (field: Buffer): number => {
  const digits = text(field).trim();
  if (!/^[0-7]+$/.test(digits)) throw new TarError('a tar header contains an invalid octal number');
  return Number.parseInt(digits, 8);
};

function text(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

/** Parses records of the form "LENGTH KEY=VALUE\n". The length includes its own digits. */
function parsePax(bytes: Buffer): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const blankAt = bytes.indexOf(0x20, at);
    const length = parseWholeNumber(blankAt < 0 ? undefined : bytes.toString('latin1', at, blankAt));
    const record = bytes.toString('utf8', blankAt + 1, at + length - 1);
    const equalsAt = record.indexOf('=');
    if (length <= blankAt - at || equalsAt < 0) throw new TarError('a pax header is invalid');
    values.set(record.slice(0, equalsAt), record.slice(equalsAt + 1));
    at += length;
  }
  return values;
}

function parseWholeNumber(digits: string | undefined): number {
  const number = Number(digits);
  if (digits === undefined || !/^\d{1,15}$/.test(digits) || !Number.isSafeInteger(number))
    throw new TarError('a pax header contains an invalid number');
  return number;
}
