// A file as it is given out: what is told of it, and how its bytes are had. Whoever has bytes for a signed link knows how
// to find one of these by the link's object.
import type { ByteRange, OpenedArtifact } from '../../engines/artifacts/artifacts.ts';
import type { ApplicationId } from '../../kit/ids.ts';

export interface ServedFile {
  readonly name: string;
  readonly size: number;
  readonly mimeType: string;
  /** SHA-256, or whatever else changes with the bytes. */
  readonly tag: string;
  readonly disposition: 'attachment' | 'inline';
  readonly createdAt: Date;
  open(range?: ByteRange): Promise<OpenedArtifact | undefined>;
}

/** Finds the file of an object by the part of its name behind the colon. Undefined: there is none, or no more. */
export type FileFinder = (application: ApplicationId, id: string) => Promise<ServedFile | undefined>;
