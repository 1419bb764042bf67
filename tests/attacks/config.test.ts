// The public configuration (/v1/config) reveals nothing about applications.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../harness/server.ts';

const server = await startServer();

test('the configuration does not reveal whether an application exists', async () => {
  const read = async (query: string) => {
    const { status, headers, text } = await server.api('GET', `/v1/config${query}`, { key: null });
    return { status, etag: headers.etag, text };
  };
  const plainResponse = await read('');
  assert.equal(plainResponse.status, 200);
  for (const id of [server.applicationId, '01a1fa50-5319-7450-a6b3-c787ada50631', 'x', '%00', '../..'])
    assert.deepEqual(await read(`?application=${id}`), plainResponse, id);
  assert.ok(!plainResponse.text.includes(server.applicationId));
});
