import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import type { ServedFile } from '../../domain/files/served-file.ts';
import { isFault } from '../../kit/fault.ts';
import { fileResponse, parseRange } from './file-response.ts';

const TAG = 'a'.repeat(64);
const FILE: ServedFile = {
  ...{ name: 'ten.txt', size: 10, mimeType: 'text/plain', tag: TAG, disposition: 'attachment' as const },
  createdAt: new Date('2026-11-20T10:00:00Z'),
  open: async (range = { first: 0, last: 9 }) => ({
    size: 10,
    body: Readable.from(['0123456789'.slice(range.first, range.last + 1)]),
  }),
};

const requestFile = async (headers: Record<string, string>, file = FILE, isHead = false) => {
  const { status, body, headers: sent = {} } = await fileResponse(file, { headers, isHead });
  return { status, sent, text: body instanceof Readable ? await text(body) : undefined };
};

describe('fileResponse', () => {
  it('returns the whole file and its metadata', async () => {
    const { status, sent, text } = await requestFile({});
    assert.deepEqual([status, text], [200, '0123456789']);
    assert.equal(sent.etag, `"${TAG}"`);
    assert.equal(sent['content-length'], '10');
    assert.equal(sent['accept-ranges'], 'bytes');
    assert.match(sent['content-disposition'] ?? '', /^attachment; filename="ten.txt"/);
  });

  it('returns an empty file without opening it', async () => {
    const { status, sent, text } = await requestFile({}, { ...FILE, size: 0, open: () => assert.fail() });
    assert.deepEqual([status, sent['content-length'], text], [200, '0', '']);
  });

  it('returns the requested range of a file', async () => {
    const { status, sent, text } = await requestFile({ range: 'bytes=2-4' });
    assert.deepEqual([status, text, sent['content-length']], [206, '234', '3']);
    assert.equal(sent['content-range'], 'bytes 2-4/10');
  });

  it('does not open the file for HEAD', async () => {
    const { status, sent, text } = await requestFile({}, { ...FILE, open: () => assert.fail() }, true);
    assert.deepEqual([status, sent['content-length'], text], [200, '10', '']);
  });

  it('responds with 304 if If-None-Match matches', async () => {
    for (const tag of [`"${TAG}"`, `W/"${TAG}"`, `"other", "${TAG}"`, '*'])
      assert.equal((await requestFile({ 'if-none-match': tag })).status, 304, tag);
    assert.equal((await requestFile({ 'if-none-match': '"other"' })).status, 200);
  });

  it('returns the whole file if If-Range does not match', async () => {
    assert.equal((await requestFile({ range: 'bytes=2-4', 'if-range': `"${TAG}"` })).status, 206);
    assert.equal((await requestFile({ range: 'bytes=2-4', 'if-range': '"other"' })).status, 200);
  });

  it('reports a missing file as not_found, and a failing store as storage_unreachable', async () => {
    const gone = fileResponse({ ...FILE, open: async () => undefined }, { headers: {}, isHead: false });
    await assert.rejects(gone, error => isFault(error, 'not_found'));
    const away = fileResponse(
      { ...FILE, open: () => Promise.reject(new Error('away')) },
      { headers: {}, isHead: false },
    );
    await assert.rejects(away, error => isFault(error, 'storage_unreachable'));
  });
});

describe('parseRange', () => {
  for (const [header, part] of [
    ['bytes=0-0', { first: 0, last: 0 }],
    ['bytes=0-', { first: 0, last: 9 }],
    ['bytes=9-', { first: 9, last: 9 }],
    ['bytes=3-100', { first: 3, last: 9 }],
    ['bytes=-3', { first: 7, last: 9 }],
    ['bytes=-30', { first: 0, last: 9 }],
    ['bytes=4-2', undefined],
    ['bytes=-', undefined],
    ['bytes=0-1,3-4', undefined],
    ['lines=1-2', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const)
    it(`returns ${part ? `bytes ${part.first} to ${part.last}` : 'undefined'} for the Range header ${header} and a file of ten bytes`, () =>
      assert.deepEqual(parseRange(header, 10), part));

  for (const header of ['bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=9999999999999999-'])
    it(`refuses the Range header ${header} for a file of ten bytes`, () =>
      assert.throws(
        () => parseRange(header, 10),
        error => isFault(error, 'range_not_satisfiable'),
      ));
});
