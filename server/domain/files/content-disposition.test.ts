import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { contentDisposition } from './content-disposition.ts';

describe('Content-Disposition', () => {
  for (const [name, header] of [
    ['report.pdf', `attachment; filename="report.pdf"; filename*=UTF-8''report.pdf`],
    ['Grüße.txt', `attachment; filename="Gr__e.txt"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.txt`],
    ['a"b\\c%41', `attachment; filename="a_b_c_41"; filename*=UTF-8''a%22b%5Cc%2541`],
    ["it's (1)*", `attachment; filename="it's (1)*"; filename*=UTF-8''it%27s%20%281%29%2A`],
    ['a\r\nSet-Cookie: x', `attachment; filename="a__Set-Cookie: x"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x`],
    ['\ud800', `attachment; filename="_"; filename*=UTF-8''%EF%BF%BD`],
  ] as const)
    it(`escapes ${JSON.stringify(name)}`, () => assert.equal(contentDisposition('attachment', name), header));
});
