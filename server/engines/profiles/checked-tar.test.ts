import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { extract, pack } from 'tar-stream';
import { type CheckWish, checkedTar, noFacts, readFiles, TarRefused, tarOf } from './checked-tar.ts';
import { TarBroken } from './tar-reader.ts';

type Header = Parameters<ReturnType<typeof pack>['entry']>[0];

/** As another program writes it. */
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

const check = (tar: Buffer, wish: CheckWish): Promise<Buffer> => buffer(Readable.from(checkedTar(piecesOf(tar), wish)));

/** As another program reads it. */
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

const STRANGE: ReadonlyArray<readonly [string, Header]> = [
  ['a symbolic link', { name: 'Default/IndexedDB/link', type: 'symlink', linkname: '/etc/shadow' }],
  ['a hard link', { name: 'Default/IndexedDB/hard', type: 'link', linkname: 'Default/Cookies' }],
  ['a pipe', { name: 'Default/IndexedDB/pipe', type: 'fifo' }],
  ['a device', { name: 'Default/IndexedDB/null', type: 'character-device', devmajor: 1, devminor: 3 }],
  ['a way up', { name: 'Default/IndexedDB/../../../evil' }],
  ['an absolute name', { name: '/Default/IndexedDB/evil' }],
  ['a control character', { name: 'Default/IndexedDB/e\nvil' }],
  ['a name that is too long', { name: `Default/IndexedDB/${'x'.repeat(1100)}` }],
  ['a place too deep', { name: `Default/IndexedDB/${'x/'.repeat(20)}y` }],
  ['what is not kept', { name: 'Default/History' }],
  ['what is not kept of the network', { name: 'Default/Network/Trust Tokens' }],
  ['a file beside the profile', { name: 'Local State' }],
];

for (const [what, header] of STRANGE)
  test(`${what} is left out of a pack, and refused in an archive`, async () => {
    const tar = await foreignTar([FILE, 'kept'], [header]);
    const facts = noFacts();
    const copy = await check(tar, { strange: 'skip', facts });
    assert.deepEqual(await namesIn(copy), [`file ${FILE.name}`]);
    assert.deepEqual(facts, { bytes: 4, entries: 1, skipped: 1 });
    await assert.rejects(check(tar, { strange: 'refuse' }), TarRefused);
  });

test('names and bytes survive, long names too, and other programs read the copy', async () => {
  const long = `Default/IndexedDB/https_${'sub.'.repeat(60)}example_0.indexeddb.leveldb/000003.log`;
  const files = new Map([
    [FILE.name, Buffer.from('one')],
    [long, Buffer.alloc(100_000, 'x')],
    ['Default/Local Storage/leveldb/日本', Buffer.alloc(0)],
    [`Default/IndexedDB/${'n'.repeat(81)}`, Buffer.from('a name whose record is just as long as its length')],
  ]);
  const copy = await check(await buffer(Readable.from(tarOf(files))), { strange: 'refuse', under: 'profile/' });
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

test('more bytes or files than the bounds allow are refused, however little is sent', async () => {
  const two = await foreignTar([FILE, 'x'.repeat(600)], [{ name: 'Default/Cookies' }, 'y']);
  await assert.rejects(check(two, { strange: 'skip', bounds: { bytes: 600, entries: 9 } }), /more than 600 bytes/);
  await assert.rejects(check(two, { strange: 'skip', bounds: { bytes: 9e3, entries: 1 } }), /more than 1 files/);
  await assert.rejects(
    readFiles(piecesOf(two), () => true, 600),
    TarRefused,
  );
  const claimed = Buffer.from(await foreignTar([FILE]));
  claimed.write('77777777777\0', 124);
  fixSum(claimed);
  await assert.rejects(check(claimed, { strange: 'skip' }), TarRefused);
});

test('a tar that is cut off, altered, or goes on for ever is refused', async () => {
  const tar = await foreignTar([FILE, 'x'.repeat(2000)]);
  for (const end of [100, 512, 1500, 2600])
    await assert.rejects(check(tar.subarray(0, end), { strange: 'skip' }), TarBroken);
  const altered = Buffer.from(tar);
  altered.write('evil', 8);
  await assert.rejects(check(altered, { strange: 'skip' }), TarBroken);
  await assert.rejects(check(Buffer.concat([tar, Buffer.from('more')]), { strange: 'skip' }), TarBroken);
  const [header] = [Buffer.from((await foreignTar([{ name: 'pax', type: 'file' }])).subarray(0, 512))];
  header.write('g', 156);
  fixSum(header);
  const endless = (async function* () {
    for (;;) yield Buffer.concat(Array.from({ length: 64 }, () => header));
  })();
  const bounds = { bytes: 1000, entries: 10 };
  await assert.rejects(async () => {
    for await (const _ of checkedTar(endless, { strange: 'skip', bounds }));
  }, TarBroken);
});

function fixSum(block: Buffer): void {
  block.write('        ', 148);
  const sum = block.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}
