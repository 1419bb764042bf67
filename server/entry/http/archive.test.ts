import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import yauzl from 'yauzl';
import type { ServedFile } from '../../domain/files/served-file.ts';
import { createArchive } from './archive.ts';

const file = (name: string, bytes: string): ServedFile => ({
  ...{ name, size: bytes.length, mimeType: 'text/plain', tag: 'x', disposition: 'attachment' },
  createdAt: new Date('2026-11-20T10:00:00Z'),
  open: async () => ({ size: bytes.length, body: Readable.from([Buffer.from(bytes)]) }),
});

async function unpack(bytes: Buffer): Promise<Record<string, string>> {
  const zip = await yauzl.fromBufferPromise(bytes);
  const found: Record<string, string> = {};
  for await (const entry of zip.eachEntry()) found[entry.fileName] = await text(await zip.openReadStreamPromise(entry));
  return found;
}

describe('createArchive', () => {
  it('creates an empty archive of 22 bytes if there are no files', async () => {
    assert.equal((await buffer(createArchive([]))).length, 22);
  });

  it('contains every file, and renames files with equal names', async () => {
    const files = [
      file('a.txt', 'one'),
      file('a.txt', 'two'),
      file('Grüße', ''),
      file('a.txt', 'three'),
      file('.b', 'x'),
    ];
    assert.deepEqual(await unpack(await buffer(createArchive(files))), {
      'a.txt': 'one',
      'a (1).txt': 'two',
      Grüße: '',
      'a (2).txt': 'three',
      '.b': 'x',
    });
  });

  it('archiving files with equal names takes less than four times as long as archiving files with different names', async () => {
    const cpuMsOf = async (nameOf: (index: number) => string): Promise<number> => {
      const files = Array.from({ length: 3_000 }, (_, index) => file(nameOf(index), ''));
      const usageBefore = process.cpuUsage();
      assert.ok((await buffer(createArchive(files))).length > 3_000);
      const { user, system } = process.cpuUsage(usageBefore);
      return (user + system) / 1000;
    };
    await cpuMsOf(index => `warm up ${index}.pdf`);
    const differentNamesMs = await cpuMsOf(index => `report ${index}.pdf`);
    const sameNameMs = await cpuMsOf(() => 'report.pdf');
    assert.ok(
      sameNameMs < 4 * differentNamesMs,
      `${sameNameMs} ms of CPU for one name, ${differentNamesMs} ms for different ones`,
    );
  });

  it('fails if a file is missing', async () => {
    const gone = { ...file('gone', 'x'), open: async () => undefined };
    await assert.rejects(
      buffer(createArchive([file('a', 'x'), gone])),
      /gone was deleted while the archive was being created/,
    );
  });
});
