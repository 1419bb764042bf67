import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from './leveldb/crc32c.ts';
import { decompressSnappy } from './leveldb/snappy.ts';
import { LOCAL_STORAGE_FOLDER, readLocalStorage, writeLocalStorage } from './local-storage.ts';

const NOW = new Date('2026-11-20T10:00:00Z');

test('non-Latin text, empty values and values longer than a block are read as they were written', async () => {
  const origins = [
    {
      origin: 'https://shop.example',
      items: new Map([
        ['name', 'Grüße'],
        ['日本', '🚢'],
        ['', ''],
        ['big', 'x'.repeat(100_000)],
      ]),
    },
    { origin: 'http://127.0.0.1:8080', items: new Map([['a\u0000b', '\u0000']]) },
  ];
  assert.deepEqual(readLocalStorage(await writeLocalStorage(origins, NOW)), origins);
  assert.deepEqual(readLocalStorage(new Map()), []);
});

test('a read omits the storage of third-party frames', async () => {
  const thirdPartyOrigin = 'https://a.example/^0https://b.example';
  const writtenFiles = await writeLocalStorage([{ origin: thirdPartyOrigin, items: new Map([['a', 'b']]) }], NOW);
  assert.deepEqual(readLocalStorage(writtenFiles), []);
});

test('a read omits an incomplete record at the end of a truncated log', async () => {
  const writtenFiles = new Map(
    await writeLocalStorage([{ origin: 'https://a.example', items: new Map([['a', 'b']]) }], NOW),
  );
  const log = `${LOCAL_STORAGE_FOLDER}000002.log`;
  const bytes = writtenFiles.get(log);
  assert.ok(bytes);
  writtenFiles.set(log, bytes.subarray(0, -1));
  assert.deepEqual(readLocalStorage(writtenFiles), []);
});

test('CRC-32C and Snappy return the expected results for known inputs, and Snappy refuses invalid data', async () => {
  assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283);
  assert.equal(decompressSnappy(Buffer.from('09086162630903', 'hex')).toString(), 'abcabcabc');
  for (const bad of ['ff', '09086162', '09086162630909', '09086162630900', '01f0ff', 'ffffffff7f00'])
    assert.throws(() => decompressSnappy(Buffer.from(bad, 'hex')), bad);
});
