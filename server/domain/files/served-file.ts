// A file that can be served: its metadata and how to open it. Each kind of file has a finder, which finds a file by the
// object that a signed link names.
import type { ByteRange, OpenedArtifact } from '../../engines/artifacts/artifacts.ts';
import type { ApplicationId } from '../../kit/ids.ts';

export interface ServedFile {
  readonly name: string;
  readonly size: number;
  readonly mimeType: string;
  /** SHA-256, or another value that changes with the bytes. Used as the ETag. */
  readonly tag: string;
  readonly disposition: 'attachment' | 'inline';
  readonly createdAt: Date;
  open(range?: ByteRange): Promise<OpenedArtifact | undefined>;
}

/**
 * Finds a file by its id, which is the part after the colon in the object of a link. Undefined if the file does not
 * exist.
 */
export type FileFinder = (application: ApplicationId, id: string) => Promise<ServedFile | undefined>;
