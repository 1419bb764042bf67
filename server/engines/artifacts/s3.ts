// Stores artifacts in an S3 bucket. Streams are uploaded in parts, so that memory is bounded. An object becomes visible
// when its upload is completed.
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Clock } from '../../kit/clock.ts';
import { hasCode } from '../../kit/durable.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Artifacts, ByteRange, LinkOptions, OpenedArtifact, PutOptions, Stored } from './artifacts.ts';
import { type ArtifactKey, type ArtifactPrefix, asKey } from './keys.ts';

/** S3 allows 10,000 parts, which limits an object to 156 GiB. */
const PART_BYTES = 16 * 1024 ** 2;
/** The number of parts that are uploaded, and kept in memory, at the same time. */
const CONCURRENT_PARTS_MAX = 2;
const DELETE_BATCH_KEYS_MAX = 1000;
const READ_CHUNK_BYTES = 1024 ** 2;
const CONNECT_TIMEOUT_MS = 5_000;
/** The time limit between two reads, not for the whole transfer. */
const SOCKET_IDLE_TIMEOUT_MS = 30_000;
const ATTEMPTS_MAX = 3;
/** An upload that is older than this is considered abandoned. */
const ABANDONED_UPLOAD_AGE_MS = 24 * 3600_000;

export interface S3Options {
  readonly endpoint?: string;
  readonly bucket: string;
  readonly region: string;
  readonly keys?: { readonly accessKey: string; readonly secretKey: Secret };
  readonly pathStyle: boolean;
}

export function openS3({ endpoint, bucket, region, keys, pathStyle }: S3Options, clock: Clock): Artifacts {
  const client = new S3Client({
    region,
    forcePathStyle: pathStyle,
    ...(endpoint ? { endpoint } : {}),
    ...(keys ? { credentials: { accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey.reveal() } } : {}),
    // Other S3-compatible stores often do not support the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SOCKET_IDLE_TIMEOUT_MS },
  });
  return new S3(client, bucket, clock);
}

class S3 implements Artifacts {
  readonly kind = 's3';
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #clock: Clock;

  constructor(client: S3Client, bucket: string, clock: Clock) {
    this.#client = client;
    this.#bucket = bucket;
    this.#clock = clock;
  }

  async put(key: ArtifactKey, body: AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<Stored> {
    const hash = createHash('sha256');
    const counter = { size: 0 };
    await this.#upload(key, hashedStream(body, hash, counter, options.signal), options);
    return { size: counter.size, checksum: hash.digest('hex') };
  }

  async putFile(key: ArtifactKey, path: string, options: PutOptions = {}): Promise<void> {
    try {
      await this.#upload(key, createReadStream(path, { highWaterMark: READ_CHUNK_BYTES }), options);
      await unlink(path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
      if (!(await this.stat(key))) throw new Error(`${path} is missing, and no object is stored as ${key}`);
    }
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenedArtifact | undefined> {
    const rangeParams = range ? { Range: `bytes=${range.first}-${range.last}` } : {};
    const command = new GetObjectCommand({ ...this.#locate(key), ...rangeParams });
    const response = await this.#client.send(command).catch(undefinedIfMissing);
    if (!response) return undefined;
    const size = range ? Number(/\/(\d+)$/.exec(response.ContentRange ?? '')?.[1]) : response.ContentLength;
    if (!(response.Body instanceof Readable) || size === undefined || Number.isNaN(size))
      throw new Error(`the object store returned ${key} without a body or a size`);
    const requestedBytes = range && range.last - range.first + 1;
    // Some stores treat the range `0-0` as the whole object.
    const hasExtraBytes = requestedBytes !== undefined && response.ContentLength !== requestedBytes;
    return { size, body: hasExtraBytes ? firstBytesOf(response.Body, requestedBytes) : response.Body };
  }

  async read(key: ArtifactKey, range?: ByteRange): Promise<Buffer | undefined> {
    const openedObject = await this.open(key, range);
    return openedObject && Buffer.concat(await openedObject.body.toArray());
  }

  async stat(key: ArtifactKey): Promise<{ size: number } | undefined> {
    const response = await this.#client.send(new HeadObjectCommand(this.#locate(key))).catch(undefinedIfMissing);
    return response && { size: response.ContentLength ?? 0 };
  }

  async *list(prefix: ArtifactPrefix): AsyncIterable<ArtifactKey> {
    let continuationToken: string | undefined;
    do {
      const page = await this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: prefix,
          ...(continuationToken === undefined ? {} : { ContinuationToken: continuationToken }),
        }),
      );
      for (const { Key } of page.Contents ?? []) if (Key !== undefined) yield asKey(Key);
      continuationToken = page.NextContinuationToken;
    } while (continuationToken !== undefined);
  }

  async remove(keys: readonly ArtifactKey[]): Promise<void> {
    for (let at = 0; at < keys.length; at += DELETE_BATCH_KEYS_MAX) {
      const Objects = keys.slice(at, at + DELETE_BATCH_KEYS_MAX).map(Key => ({ Key }));
      const Delete = { Objects, Quiet: true };
      const { Errors = [] } = await this.#client.send(new DeleteObjectsCommand({ Bucket: this.#bucket, Delete }));
      const [failure] = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
      if (failure)
        throw new Error(`the object store could not remove ${failure.Key}: ${failure.Code} ${failure.Message}`);
    }
  }

  async signedUrl(
    key: ArtifactKey,
    { expiresAt, verb, contentType, contentDisposition }: LinkOptions,
  ): Promise<string> {
    const responseHeaders = { ResponseContentType: contentType, ResponseContentDisposition: contentDisposition };
    const location = this.#locate(key);
    const now = this.#clock.now();
    const expiresIn = Math.floor((expiresAt.getTime() - now.getTime()) / 1000);
    const command =
      verb === 'HEAD' ? new HeadObjectCommand(location) : new GetObjectCommand({ ...location, ...responseHeaders });
    return getSignedUrl(this.#client, command, { expiresIn, signingDate: now });
  }

  /** Other running hosts may share the bucket, so only uploads that are a day old are removed. */
  async recover(): Promise<void> {
    const abandonedBeforeMs = this.#clock.now().getTime() - ABANDONED_UPLOAD_AGE_MS;
    let pageStart: { readonly KeyMarker: string; readonly UploadIdMarker: string | undefined } | undefined;
    do {
      const command = new ListMultipartUploadsCommand({ Bucket: this.#bucket, ...pageStart });
      const page: ListMultipartUploadsCommandOutput = await this.#client.send(command);
      await Promise.all(
        (page.Uploads ?? []).map(async ({ Key, UploadId, Initiated }) => {
          if (Key && UploadId && Initiated && Initiated.getTime() < abandonedBeforeMs) await this.#abort(Key, UploadId);
        }),
      );
      const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
      const isSamePage = KeyMarker === pageStart?.KeyMarker && UploadIdMarker === pageStart?.UploadIdMarker;
      pageStart = IsTruncated && KeyMarker !== undefined && !isSamePage ? { KeyMarker, UploadIdMarker } : undefined;
    } while (pageStart !== undefined);
  }

  close(): void {
    this.#client.destroy();
  }

  /** Does nothing if another host has aborted the upload. */
  async #abort(Key: string, UploadId: string): Promise<void> {
    const command = new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId });
    await this.#client.send(command).catch(undefinedIfMissing);
  }

  #locate(key: ArtifactKey) {
    return { Bucket: this.#bucket, Key: asKey(key) };
  }

  async #upload(key: ArtifactKey, Body: Readable, { contentType, signal }: PutOptions): Promise<void> {
    const params = { ...this.#locate(key), Body, ...(contentType ? { ContentType: contentType } : {}) };
    const upload = new Upload({ client: this.#client, params, partSize: PART_BYTES, queueSize: CONCURRENT_PARTS_MAX });
    const abort = (): void => void upload.abort();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      signal?.throwIfAborted();
      await upload.done();
    } catch (error) {
      // The reason of the signal is more useful than the error of the aborted upload.
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
      Body.destroy();
    }
  }
}

function hashedStream(
  body: AsyncIterable<Uint8Array>,
  hash: Hash,
  counter: { size: number },
  signal: AbortSignal | undefined,
): Readable {
  const hashChunks = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      signal?.throwIfAborted();
      hash.update(chunk);
      counter.size += chunk.length;
      yield chunk;
    }
  };
  return Readable.from(hashChunks(), { objectMode: false });
}

function firstBytesOf(body: Readable, bytes: number): Readable {
  const takeFirstBytes = async function* (): AsyncGenerator<Uint8Array> {
    let remainingBytes = bytes;
    for await (const chunk of body) {
      yield chunk.subarray(0, remainingBytes);
      remainingBytes -= chunk.length;
      if (remainingBytes <= 0) return;
    }
  };
  return Readable.from(takeFirstBytes(), { objectMode: false });
}

function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return undefined;
  throw error;
}
