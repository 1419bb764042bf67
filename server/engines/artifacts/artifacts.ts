// Where the bytes are kept that outlive a session: on the local disk or in an S3 bucket. What this interface promises is
// what tests/engines/artifacts-suite.ts asks of both. Rows say what is kept; this only keeps it.
import type { Readable } from 'node:stream';
import type { Stored } from '../../kit/hashed-write.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { ArtifactKey, ArtifactPrefix } from './keys.ts';

export type { Stored };

/** Both inclusive, as in HTTP, and inside the object. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

export interface OpenedArtifact {
  /** Of the whole object. */
  readonly size: number;
  /** The range, or everything. Read it to its end or destroy it. */
  readonly body: Readable;
}

export interface PutOptions {
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

export interface LinkWish {
  readonly expiresAt: Date;
  readonly verb: 'GET' | 'HEAD';
  readonly contentType: string;
  /** The whole header value. */
  readonly contentDisposition: string;
}

export interface Artifacts extends Closeable {
  readonly kind: 'disk' | 's3';
  /** Stores a stream of any length with bounded memory. All or nothing: until it returns, what stood under the key stands. */
  put(key: ArtifactKey, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<Stored>;
  /**
   * Stores a file of ours and takes it away. On the same disk it is moved, whatever its size. When the file is gone and the
   * object is there, it was stored before: nothing happens. Nobody else may hold the file open for writing.
   */
  putFile(key: ArtifactKey, path: string, options?: PutOptions): Promise<void>;
  /** Undefined when there is none. */
  open(key: ArtifactKey, range?: ByteRange): Promise<OpenedArtifact | undefined>;
  /** The same in memory: for what is known to be small, of which there may be many. */
  read(key: ArtifactKey, range?: ByteRange): Promise<Buffer | undefined>;
  stat(key: ArtifactKey): Promise<{ readonly size: number } | undefined>;
  /** Every key that begins so, in no order. */
  list(prefix: ArtifactPrefix): AsyncIterable<ArtifactKey>;
  /** What is not there is removed already. */
  remove(keys: readonly ArtifactKey[]): Promise<void>;
  /** A link at which the store itself answers; undefined where it cannot, and the server must. */
  signedUrl(key: ArtifactKey, wish: LinkWish): Promise<string | undefined>;
  /** After a start: takes away what a killed server left half-written. */
  recover(): Promise<void>;
}
