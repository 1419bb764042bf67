// Stores bytes that outlive a session, on the local disk or in an S3 bucket. tests/engines/artifacts-suite.ts tests
// both implementations of this interface. Database rows describe the objects; this module stores only their bytes.
import type { Readable } from 'node:stream';
import type { HashedFile } from '../../kit/hashed-write.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { ArtifactKey, ArtifactPrefix } from './keys.ts';

export type { HashedFile as Stored };

/** Both positions are inclusive, as in HTTP, and must be inside the object. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

export interface OpenedArtifact {
  /** Size of the whole object. */
  readonly size: number;
  /** The bytes of the range, or of the whole object. Must be read to its end or destroyed. */
  readonly body: Readable;
}

export interface PutOptions {
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

export interface LinkOptions {
  readonly expiresAt: Date;
  readonly verb: 'GET' | 'HEAD';
  readonly contentType: string;
  /** The value of the Content-Disposition header. */
  readonly contentDisposition: string;
}

export interface Artifacts extends Closeable {
  readonly kind: 'disk' | 's3';
  /**
   * Stores a stream of any length with bounded memory. The object is replaced atomically: until the promise resolves,
   * the previous object can be read.
   */
  put(key: ArtifactKey, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<HashedFile>;
  /**
   * Stores a local file and removes it. On the same disk the file is renamed. Does nothing if the file is missing and
   * the object exists, because then it has already been stored. No other process may have the file open for writing.
   */
  putFile(key: ArtifactKey, path: string, options?: PutOptions): Promise<void>;
  /** Returns undefined if the object does not exist. */
  open(key: ArtifactKey, range?: ByteRange): Promise<OpenedArtifact | undefined>;
  /** Reads an object into memory. For objects that are known to be small. */
  read(key: ArtifactKey, range?: ByteRange): Promise<Buffer | undefined>;
  stat(key: ArtifactKey): Promise<{ readonly size: number } | undefined>;
  /** Lists all keys with this prefix, in no particular order. */
  list(prefix: ArtifactPrefix): AsyncIterable<ArtifactKey>;
  /** Ignores keys that do not exist. */
  remove(keys: readonly ArtifactKey[]): Promise<void>;
  /**
   * Creates a link that the store itself serves. Returns undefined if the store cannot serve links. In that case, the
   * server must serve the object.
   */
  signedUrl(key: ArtifactKey, options: LinkOptions): Promise<string | undefined>;
  /** Must be called after a start. Removes unfinished objects that a killed server left behind. */
  recover(): Promise<void>;
}
