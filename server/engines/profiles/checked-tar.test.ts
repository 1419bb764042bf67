import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { extract, pack } from 'tar-stream';
import { type CheckOptions, checkedTar, emptyStats, readFiles, TarRefusedError, tarOf } from './checked-tar.ts';
import { TarError } from './tar-reader.ts';

type Header = Parameters<ReturnType<typeof pack>['entry']>[0];

/** A tar written by an independent implementation. */
function foreignTar(...entries: ReadonlyArray<readonly [Header, string?]>): Promise<Buffer> {
  const tar = pack();
  for (const [header, text = ''] of entries) tar.entry(header, text);
  tar.finalize();
  return collect(tar);
}

async function collect(source: AsyncIterable<unknown>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) if (part instanceof Uint8Array) parts.push(part);
  return Buffer.concat(parts);
}

const piecesOf = (bytes: Buffer, length = 333): Readable =>
  Readable.from(
    (function* () {
      for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
    })(),
  );

const checkedCopyOf = (tar: Buffer, options: CheckOptions): Promise<Buffer> =>
  buffer(Readable.from(checkedTar(piecesOf(tar), options)));

/** The entries as read by an independent implementation. */
async function namesIn(tar: Buffer): Promise<string[]> {
  const entries = extract();
  entries.end(tar);
  const names: string[] = [];
  for await (const entry of entries) {
    names.push(`${entry.header.type} ${entry.header.name}`);
    entry.resume();
  }
  return names;
}

const FILE = { name: 'Default/IndexedDB/a/b', type: 'file' } as const;

const UNEXPECTED_ENTRIES: ReadonlyArray<readonly [string, Header]> = [
  ['a symbolic link', { name: 'Default/IndexedDB/link', type: 'symlink', linkname: '/etc/shadow' }],
  ['a hard link', { name: 'Default/IndexedDB/hard', type: 'link', linkname: 'Default/Cookies' }],
  ['a pipe', { name: 'Default/IndexedDB/pipe', type: 'fifo' }],
  ['a device', { name: 'Default/IndexedDB/null', type: 'character-device', devmajor: 1, devminor: 3 }],
  ['a path with ..', { name: 'Default/IndexedDB/../../../evil' }],
  ['an absolute path', { name: '/Default/IndexedDB/evil' }],
  ['a control character', { name: 'Default/IndexedDB/e\nvil' }],
  ['a name that is too long', { name: `Default/IndexedDB/${'x'.repeat(1100)}` }],
  ['a path that is nested too deep', { name: `Default/IndexedDB/${'x/'.repeat(20)}y` }],
  ['a file that is not stored', { name: 'Default/History' }],
  ['a network file that is not stored', { name: 'Default/Network/Trust Tokens' }],
  ['a file outside the profile', { name: 'Local State' }],
];

for (const [what, header] of UNEXPECTED_ENTRIES)
  test(`${what} is skipped when packing and refused when unpacking`, async () => {
    const tar = await foreignTar([FILE, 'kept'], [header]);
    const stats = emptyStats();
    const copy = await checkedCopyOf(tar, { unexpectedEntryAction: 'skip', stats });
    assert.deepEqual(await namesIn(copy), [`file ${FILE.name}`]);
    assert.deepEqual(stats, { bytes: 4, entries: 1, skipped: 1 });
    await assert.rejects(checkedCopyOf(tar, { unexpectedEntryAction: 'refuse' }), TarRefusedError);
  });

test('writes tar files that another implementation can read, and reads tar files of that implementation, including long names', async () => {
  const long = `Default/IndexedDB/https_${'sub.'.repeat(60)}example_0.indexeddb.leveldb/000003.log`;
  const files = new Map([
    [FILE.name, Buffer.from('one')],
    [long, Buffer.alloc(100_000, 'x')],
    ['Default/Local Storage/leveldb/日本', Buffer.alloc(0)],
    [`Default/IndexedDB/${'n'.repeat(81)}`, Buffer.from('a name whose record is just as long as its length')],
  ]);
  const copy = await checkedCopyOf(await buffer(Readable.from(tarOf(files))), {
    unexpectedEntryAction: 'refuse',
    prefix: 'profile/',
  });
  assert.deepEqual(
    await namesIn(copy),
    [...files.keys()].map(name => `file profile/${name}`),
  );
  const read = await readFiles(
    piecesOf(await foreignTar(...[...files].map(([name, bytes]) => [{ name }, bytes.toString()] as const))),
    () => true,
    1e6,
  );
  assert.deepEqual(read, files);
});

test('refuses a tar whose headers declare more bytes or files than the limits allow', async () => {
  const two = await foreignTar([FILE, 'x'.repeat(600)], [{ name: 'Default/Cookies' }, 'y']);
  await assert.rejects(
    checkedCopyOf(two, { unexpectedEntryAction: 'skip', limits: { bytes: 600, entries: 9 } }),
    /more than 600 bytes/,
  );
  await assert.rejects(
    checkedCopyOf(two, { unexpectedEntryAction: 'skip', limits: { bytes: 9e3, entries: 1 } }),
    /more than 1 files/,
  );
  await assert.rejects(
    readFiles(piecesOf(two), () => true, 600),
    TarRefusedError,
  );
  const oversizedTar = Buffer.from(await foreignTar([FILE]));
  oversizedTar.write('77777777777\0', 124);
  fixChecksum(oversizedTar);
  await assert.rejects(checkedCopyOf(oversizedTar, { unexpectedEntryAction: 'skip' }), TarRefusedError);
});

test('refuses a tar that is truncated, altered or endless', async () => {
  const tar = await foreignTar([FILE, 'x'.repeat(2000)]);
  for (const end of [100, 512, 1500, 2600])
    await assert.rejects(checkedCopyOf(tar.subarray(0, end), { unexpectedEntryAction: 'skip' }), TarError);
  const alteredTar = Buffer.from(tar);
  alteredTar.write('evil', 8);
  await assert.rejects(checkedCopyOf(alteredTar, { unexpectedEntryAction: 'skip' }), TarError);
  await assert.rejects(
    checkedCopyOf(Buffer.concat([tar, Buffer.from('more')]), { unexpectedEntryAction: 'skip' }),
    TarError,
  );
  const [header] = [Buffer.from((await foreignTar([{ name: 'pax', type: 'file' }])).subarray(0, 512))];
  header.write('g', 156);
  fixChecksum(header);
  const endlessTar = (async function* () {
    for (;;) yield Buffer.concat(Array.from({ length: 64 }, () => header));
  })();
  const limits = { bytes: 1000, entries: 10 };
  await assert.rejects(async () => {
    for await (const _ of checkedTar(endlessTar, { unexpectedEntryAction: 'skip', limits }));
  }, TarError);
});

function fixChecksum(block: Buffer): void {
  block.write('        ', 148);
  const sum = block.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}
