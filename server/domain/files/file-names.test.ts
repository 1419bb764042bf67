import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { downloadName, requireUploadName } from './file-names.ts';

describe('requireUploadName', () => {
  for (const name of [
    'cv.pdf',
    'Grüße ☂.txt',
    'שלום\u200f.txt',
    '\u202egpj.exe',
    '.hidden',
    'a b',
    '...',
    'ä'.repeat(127),
  ])
    it(`accepts ${JSON.stringify(name.slice(0, 20))}`, () => assert.equal(requireUploadName(name), name));

  for (const name of [
    '',
    '.',
    '..',
    '../x',
    'a/b',
    '/etc/passwd',
    'a\\b',
    'a\0b',
    'a\nb',
    '\u007f',
    'x'.repeat(256),
    '☂'.repeat(86),
  ])
    it(`refuses ${JSON.stringify(name.slice(0, 20))}`, () =>
      assert.throws(
        () => requireUploadName(name),
        error => isFault(error, 'invalid_file'),
      ));
});

describe('the name of a download', () => {
  for (const [suggested, shown] of [
    ['report.pdf', 'report.pdf'],
    ['Grüße ☂.txt', 'Grüße ☂.txt'],
    ['', 'download'],
    ['..', 'download'],
    ['../../etc/passwd', '.._.._etc_passwd'],
    ['a\\b\0c\nd', 'a_b_c_d'],
    ['\ud800x', '\ufffdx'],
  ] as const)
    it(`${JSON.stringify(suggested)} becomes ${JSON.stringify(shown)}`, () =>
      assert.equal(downloadName(suggested), shown));

  it('a long name is truncated at a character boundary, and keeps its extension', () => {
    const name = downloadName(`${'☂'.repeat(200)}.tar.gz`);
    assert.ok(Buffer.byteLength(name) <= 255 && Buffer.byteLength(name) > 250, name);
    assert.match(name, /^☂+\.gz$/);
  });
});
