// Artifacts in an S3 bucket: the common suite with s3rver, and tests that only S3 needs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { downloadKey } from '../../server/engines/artifacts/keys.ts';
import { openS3 } from '../../server/engines/artifacts/s3.ts';
import { addMs, systemClock } from '../../server/kit/clock.ts';
import type { ApplicationId, SessionId } from '../../server/kit/ids.ts';
import { Secret } from '../../server/kit/secret.ts';
import { type S3Store, startS3 } from '../harness/s3.ts';
import { describeArtifacts } from './artifacts-suite.ts';

const open = ({ endpoint, bucket, accessKey, secretKey }: S3Store) =>
  openS3(
    { endpoint, bucket, region: 'us-east-1', pathStyle: true, keys: { accessKey, secretKey: new Secret(secretKey) } },
    systemClock,
  );

describeArtifacts('S3', async scope => open(scope.own(await startS3())));

describe('artifacts on S3', () => {
  const newKey = () => downloadKey(randomUUID() as ApplicationId, randomUUID() as SessionId, randomUUID());

  it('creates links that the store serves, with ranges, until they expire', async () => {
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
      const whole = await fetch(url);
      assert.equal(await whole.text(), 'hello there');
      assert.equal(whole.headers.get('content-disposition'), options.contentDisposition);
      const part = await fetch(url, { headers: { range: 'bytes=6-10' } });
      assert.deepEqual([part.status, await part.text()], [206, 'there']);
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

  it('fails while the store is down, keeps the file, and works again afterwards', async () => {
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
});
