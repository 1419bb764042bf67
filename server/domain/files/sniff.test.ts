import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mimeTypeOf } from './sniff.ts';

describe('the type of a file', () => {
  for (const [bytes, name, type] of [
    ['%PDF-1.7\n', 'a.txt', 'application/pdf'],
    ['\x89PNG\r\n\x1a\n....', 'x', 'image/png'],
    ['RIFF....WEBPVP8 ', 'x', 'image/webp'],
    ['....ftypisom', 'clip.mp4', 'video/mp4'],
    ['PK\x03\x04....', 'a.zip', 'application/zip'],
    ['PK\x03\x04....', 'A.DOCX', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['a,b\n1,2\n', 'table.csv', 'text/csv'],
    ['{"a":1}', 'a.json', 'application/json'],
    ['  <!DOCTYPE html><p>', 'page', 'text/html'],
    ['Gr\xc3\xbc\xc3\x9fe', 'note', 'text/plain'],
    ['\0\x01\x02', 'a.csv', 'application/octet-stream'],
    ['', 'a.csv', 'application/octet-stream'],
  ] as const)
    it(`${JSON.stringify(bytes)} named ${name} is detected as ${type}`, () =>
      assert.equal(mimeTypeOf(Buffer.from(bytes, 'latin1'), name), type));
});
