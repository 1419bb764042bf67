import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createCrx3, type ZipEntry, zip } from '../../../tests/harness/zip.ts';
import { isFault } from '../../kit/fault.ts';
import { ExtensionPackages } from './packages.ts';
import type { Reason } from './refusal.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-extensions-'));
after(() => rmSync(folder, { recursive: true }));
const scratchFolder = join(folder, 'scratch');
const packages = new ExtensionPackages(scratchFolder);

const NOT_ABORTED = new AbortController().signal;
const MANIFEST = { manifest_version: 3, name: 'Tested', version: '1.2.3', background: { service_worker: 'sw.js' } };
const manifest = (more: object = {}): ZipEntry => ({
  name: 'manifest.json',
  bytes: JSON.stringify({ ...MANIFEST, ...more }),
});

let fileCount = 0;
function writePackage(bytes: Buffer): string {
  const path = join(folder, `package-${fileCount++}`);
  writeFileSync(path, bytes);
  return path;
}

test('returns the name and the versions from the manifest of an archive, and whether the package has a service worker', async () => {
  const info = await packages.inspect(writePackage(zip([manifest(), { name: 'js/sw.js', bytes: 'go()' }])));
  assert.deepEqual(info, { name: 'Tested', version: '1.2.3', manifestVersion: 3, hasServiceWorker: true });
});

test('accepts a manifest with comments, a byte order mark and a key', async () => {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'der' });
  const text = `\uFEFF// made by hand\n{ "manifest_version": 3, /* so */ "name": "a//b", "version": "1", "key": "${key.toString('base64')}" }`;
  const info = await packages.inspect(writePackage(zip([{ name: 'manifest.json', bytes: text }])));
  assert.equal(info.name, 'a//b');
  assert.equal(info.hasServiceWorker, false);
  assert.match(String(info.ownId), /^[a-p]{32}$/);
});

const link = { name: 'passwd', bytes: '/etc/passwd', mode: 0o120777 };
const many = Array.from({ length: 10_001 }, (_, index) => ({ name: `f${index}`, method: 0 }));
const zeros = Buffer.alloc(20 * 1024 ** 2);

/** Invalid archives and the expected reasons. */
const REFUSED_PACKAGES: ReadonlyArray<readonly [what: string, reason: Reason, entries: readonly ZipEntry[]]> = [
  ['a name with ..', 'path_escape', [manifest(), { name: '../../evil.js' }]],
  ['a name with .. and backslashes', 'path_escape', [manifest(), { name: 'a\\..\\..\\evil.js' }]],
  ['an absolute name', 'absolute_path', [manifest(), { name: '/etc/cron.d/evil' }]],
  ['a name with a drive', 'absolute_path', [manifest(), { name: 'C:/evil' }]],
  ['a name with a backslash', 'bad_name', [manifest(), { name: 'a\\b.js' }]],
  ['a name with a zero byte', 'bad_name', [manifest(), { name: 'a\0.js' }]],
  ['an empty part', 'bad_name', [manifest(), { name: 'a//b.js' }]],
  ['a name that is too long', 'bad_name', [manifest(), { name: 'x'.repeat(256) }]],
  ['a name that Chromium reserves', 'bad_name', [manifest(), { name: '_secret.js' }]],
  ['a link', 'link', [manifest(), link]],
  ['a device', 'special_file', [manifest(), { name: 'null', mode: 0o020666 }]],
  ['a folder name with the type of a file', 'special_file', [manifest(), { name: 'a/', mode: 0o100644 }]],
  ['the same name twice', 'duplicate_name', [manifest(), { name: 'a.js' }, { name: 'a.js' }]],
  ['a second manifest', 'duplicate_name', [manifest(), manifest()]],
  ['a file with the name of a folder', 'duplicate_name', [manifest(), { name: 'a/b' }, { name: 'a' }]],
  ['a folder with the name of a file', 'duplicate_name', [manifest(), { name: 'a' }, { name: 'a/b' }]],
  ['names that differ in case', 'case_collision', [manifest(), { name: 'a.js' }, { name: 'A.js' }]],
  ['folders that differ in case', 'case_collision', [manifest(), { name: 'a/b' }, { name: 'A/c' }]],
  [
    'names that differ in Unicode normalization',
    'case_collision',
    [manifest(), { name: '\u00e9' }, { name: 'e\u0301' }],
  ],
  ['an encrypted entry', 'encrypted', [manifest(), { name: 'a.js', flags: 0x801 }]],
  ['an unsupported compression method', 'compression_method', [manifest(), { name: 'a.js', method: 12 }]],
  ['too many entries', 'too_many_entries', [manifest(), ...many]],
  ['a zip bomb with a high ratio', 'compression_ratio', [manifest(), { name: 'a', bytes: zeros }]],
  [
    'a zip bomb with a large declared size',
    'too_large_unpacked',
    [manifest(), { name: 'a', bytes: 'x', size: 600 * 1024 ** 2 }],
  ],
  ['more bytes than declared', 'damaged', [manifest(), { name: 'a', bytes: zeros, size: 10 }]],
  ['a wrong checksum', 'damaged', [manifest(), { name: 'a', bytes: 'x', crc: 1 }]],
  ['no manifest', 'manifest_missing', [{ name: 'a.js' }]],
  ['a manifest in a folder', 'manifest_not_at_root', [{ ...manifest(), name: 'my/manifest.json' }]],
  ['a manifest that is not JSON', 'manifest_not_json', [{ name: 'manifest.json', bytes: '{' }]],
  ['a manifest that is a list', 'manifest_not_json', [{ name: 'manifest.json', bytes: '[]' }]],
  ['a manifest that is too large', 'manifest_not_json', [{ name: 'manifest.json', bytes: ' '.repeat(2 * 1024 ** 2) }]],
  ['manifest version 2', 'manifest_version', [manifest({ manifest_version: 2 })]],
  ['no manifest version', 'manifest_version', [manifest({ manifest_version: undefined })]],
  ['no name', 'manifest_field', [manifest({ name: '' })]],
  ['an invalid version', 'manifest_field', [manifest({ version: '1.x' })]],
  ['version zero', 'manifest_field', [manifest({ version: '0.0' })]],
  ['permissions that are not a list', 'manifest_field', [manifest({ permissions: 'all' })]],
  ['a worker that is not a string', 'manifest_field', [manifest({ background: { service_worker: 7 } })]],
];

const assertRefused = async (path: string, reason: Reason): Promise<string> => {
  let message = '';
  await assert.rejects(
    packages.inspect(path),
    error => {
      message = String(error);
      return isFault(error, 'invalid_file') && error.details?.reason === reason;
    },
    reason,
  );
  return message;
};

for (const [what, reason, entries] of REFUSED_PACKAGES)
  test(`refuses a package with ${what} (${reason})`, async () => {
    await assertRefused(writePackage(zip(entries)), reason);
  });

test('refuses files that are not archives, and truncated archives', async () => {
  const wholePackage = zip([manifest(), { name: 'a.js', bytes: 'x'.repeat(1000), method: 0 }]);
  await assertRefused(writePackage(Buffer.from('hello')), 'not_a_zip');
  await assertRefused(writePackage(Buffer.alloc(0)), 'not_a_zip');
  await assertRefused(writePackage(wholePackage.subarray(0, -30)), 'not_a_zip');
  await assertRefused(
    writePackage(Buffer.concat([wholePackage.subarray(0, 500), wholePackage.subarray(600)])),
    'damaged',
  );
});

test('each reason for refusing a package has its own message', async () => {
  const messages = new Map<string, string>();
  for (const [, reason, entries] of REFUSED_PACKAGES)
    messages.set(reason, await assertRefused(writePackage(zip(entries)), reason));
  assert.equal(new Set([...messages.values()].map(words => words.replace(/".*?"/g, ''))).size, messages.size);
  assert.ok(messages.size >= 15);
});

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

test('accepts a .crx that is signed with its own key, and derives the id from that key', async () => {
  for (const key of [rsa, ec]) {
    const info = await packages.inspect(writePackage(createCrx3(zip([manifest()]), key)));
    assert.equal(info.name, 'Tested');
    assert.match(String(info.ownId), /^[a-p]{32}$/);
  }
});

test('refuses a .crx that was changed, signed with another key, truncated or of version 2', async () => {
  const signedPackage = createCrx3(zip([manifest(), { name: 'a.js', bytes: 'good', method: 0 }]), rsa);
  const changedPackage = Buffer.from(signedPackage);
  changedPackage.write('evil', changedPackage.indexOf('good'), 'latin1');
  await assertRefused(writePackage(changedPackage), 'crx_signature');
  await assertRefused(
    writePackage(createCrx3(zip([manifest()]), { publicKey: rsa.publicKey, privateKey: ec.privateKey })),
    'crx_signature',
  );
  await assertRefused(writePackage(signedPackage.subarray(0, 40)), 'crx_signature');
  const versionTwoPackage = Buffer.from(signedPackage);
  versionTwoPackage.writeUInt32LE(2, 4);
  await assertRefused(writePackage(versionTwoPackage), 'crx_version');
});

test('refuses a .crx whose key has a type that cannot sign a .crx', async () => {
  const keys = [generateKeyPairSync('ed25519'), generateKeyPairSync('x25519')];
  for (const { publicKey } of keys)
    await assertRefused(
      writePackage(createCrx3(zip([manifest()]), { publicKey, privateKey: rsa.privateKey })),
      'crx_signature',
    );
});

test('unpacks the files and adds the key of the .crx header to the manifest', async () => {
  const box = join(folder, 'box');
  mkdirSync(box);
  const entries = [
    manifest(),
    { name: 'js/', mode: 0o040755 },
    { name: 'js/deep/sw.js', bytes: 'go()', mode: 0o100600 },
  ];
  const skippedEntries = [
    { name: '_metadata/verified_contents.json', bytes: '{}' },
    { name: '__MACOSX/._a', bytes: 'x' },
  ];
  const path = writePackage(createCrx3(zip([...entries, ...skippedEntries]), rsa));
  const info = await packages.unpack(createReadStream(path), box, 'one', NOT_ABORTED);
  const unpackedFolder = packages.folderIn(box, 'one');
  assert.equal(info.hasServiceWorker, true);
  assert.equal(readFileSync(join(unpackedFolder, 'js/deep/sw.js'), 'latin1'), 'go()');
  assert.equal(statSync(join(unpackedFolder, 'js/deep/sw.js')).mode & 0o777, 0o644);
  const { key } = JSON.parse(readFileSync(join(unpackedFolder, 'manifest.json'), 'utf8'));
  assert.equal(key, rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'));
  for (const name of ['_metadata', '__MACOSX']) assert.equal(existsSync(join(unpackedFolder, name)), false, name);
  await assert.rejects(packages.unpack(createReadStream(path), box, 'one', NOT_ABORTED), /EEXIST/);
});

test('stops unpacking when the signal is aborted, and deletes its copy of the package', async () => {
  const box = join(folder, 'stopped');
  mkdirSync(box);
  const names = Array.from({ length: 50 }, (_, index) => `f${index}`);
  const path = writePackage(zip([manifest(), ...names.map(name => ({ name, bytes: 'x' }))]));
  const abortController = new AbortController();
  let isUnpacking = true;
  const unpackPromise = packages.unpack(createReadStream(path), box, 'one', abortController.signal).finally(() => {
    isUnpacking = false;
  });
  const unpackedFolder = packages.folderIn(box, 'one');
  // Writing a file takes several turns of the event loop, so this loop sees the first file before the next one is
  // written.
  while (isUnpacking && !existsSync(join(unpackedFolder, 'f0'))) await setImmediate();
  abortController.abort(new Error('the caller has gone'));
  await assert.rejects(unpackPromise, /abort|gone/i);
  const unpackedNames = readdirSync(unpackedFolder);
  assert.ok(unpackedNames.includes('f0') && unpackedNames.length < names.length, `${unpackedNames.length} files`);
  assert.deepEqual(readdirSync(scratchFolder), [], 'nothing more can be unpacked');
});
