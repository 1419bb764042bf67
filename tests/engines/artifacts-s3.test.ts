// Artifacts in an S3 bucket: the common suite with s3rver, and tests that only S3 needs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { downloadKey } from '../../server/engines/artifacts/keys.ts';
import { openS3 } from '../../server/engines/artifacts/s3.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import type { ApplicationId, SessionId } from '../../server/kit/ids.ts';
import { Secret } from '../../server/kit/secret.ts';
import { type S3Store, startS3 } from '../harness/s3.ts';
import { describeArtifacts } from './artifacts-suite.ts';

type Bucket = Pick<S3Store, 'endpoint' | 'bucket' | 'accessKey' | 'secretKey'>;

const open = ({ endpoint, bucket, accessKey, secretKey }: Bucket) =>
  openS3(
    { endpoint, bucket, region: 'us-east-1', pathStyle: true, keys: { accessKey, secretKey: new Secret(secretKey) } },
    systemClock,
  );

describeArtifacts('S3', async scope => open(scope.own(await startS3())));

describe('artifacts on S3', () => {
  const newKey = () => downloadKey(randomUUID() as ApplicationId, randomUUID() as SessionId, randomUUID());

  it('links signed by the S3 store serve the object and ranges of it, contain an expiry, and return 404 after the object is removed', async () => {
    const store = await startS3();
    const artifacts = open(store);
    try {
      const key = newKey();
      await artifacts.put(key, Readable.from([Buffer.from('hello there')]));
      const options = {
        verb: 'GET',
        contentType: 'text/plain',
        contentDisposition: 'attachment; filename="a.txt"',
      } as const;
      const url = String(await artifacts.signedUrl(key, { ...options, expiresAt: addMs(systemClock.now(), 60_000) }));
      assert.ok(url.startsWith(store.endpoint));
      const wholeResponse = await fetch(url);
      assert.equal(await wholeResponse.text(), 'hello there');
      assert.equal(wholeResponse.headers.get('content-disposition'), options.contentDisposition);
      const partResponse = await fetch(url, { headers: { range: 'bytes=6-10' } });
      assert.deepEqual([partResponse.status, await partResponse.text()], [206, 'there']);
      // A real S3 store checks the signature, but s3rver does not. The expiry is in whole seconds and never later than
      // requested.
      assert.match(url, /X-Amz-Expires=(?:59|60)&/);
      await artifacts.remove([key]);
      assert.equal((await fetch(url)).status, 404);
    } finally {
      await artifacts.close();
      await store.close();
    }
  });

  it('put and stat fail while the S3 store is down, and work again afterwards', async () => {
    const store = await startS3();
    const artifacts = open(store);
    try {
      const key = newKey();
      await store.down();
      await assert.rejects(artifacts.put(key, Readable.from([Buffer.from('x')])), /ECONNREFUSED/);
      await assert.rejects(artifacts.stat(key));
      await store.up();
      assert.equal(await artifacts.stat(key), undefined);
      await artifacts.put(key, Readable.from([Buffer.from('x')]));
      assert.deepEqual(await artifacts.stat(key), { size: 1 });
    } finally {
      await artifacts.close();
      await store.close();
    }
  });

  it('abandoned uploads on all list pages are aborted, even if another host has already aborted one of them', async () => {
    const [now, yesterday] = [systemClock.now(), addMs(systemClock.now(), -25 * 3_600_000)];
    const uploadXml = (id: string, initiated: Date): string =>
      `<Upload><Key>of/${id}</Key><UploadId>${id}</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload>`;
    const nextMarkers =
      '<IsTruncated>true</IsTruncated><NextKeyMarker>of/b</NextKeyMarker><NextUploadIdMarker>b</NextUploadIdMarker>';
    const firstPage = `${nextMarkers}${uploadXml('a', yesterday)}${uploadXml('b', yesterday)}`;
    const secondPage = `<IsTruncated>false</IsTruncated>${uploadXml('c', yesterday)}${uploadXml('d', now)}`;
    const abortedIds: string[] = [];
    // s3rver cannot list uploads, so this server answers instead of a store.
    const store = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://store.test');
      const id = searchParams.get('uploadId');
      if (id !== null) {
        abortedIds.push(id);
        response.writeHead(id === 'a' ? 404 : 204, { 'content-type': 'application/xml' });
        response.end(id === 'a' ? '<Error><Code>NoSuchUpload</Code><Message>It is gone.</Message></Error>' : undefined);
      } else {
        const isSecond = searchParams.get('key-marker') === 'of/b' && searchParams.get('upload-id-marker') === 'b';
        response.writeHead(200, { 'content-type': 'application/xml' });
        response.end(`<ListMultipartUploadsResult>${isSecond ? secondPage : firstPage}</ListMultipartUploadsResult>`);
      }
    });
    await once(store.listen(0, '127.0.0.1'), 'listening');
    const address = store.address();
    assert.ok(address !== null && typeof address === 'object');
    const endpoint = `http://127.0.0.1:${address.port}`;
    const artifacts = open({ endpoint, bucket: 'berth', accessKey: 'key', secretKey: 'secret' });
    try {
      await artifacts.recover();
      assert.deepEqual(abortedIds.toSorted(), ['a', 'b', 'c']);
    } finally {
      await artifacts.close();
      store.closeAllConnections();
      store.close();
    }
  });
});
