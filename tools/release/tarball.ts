// A tarball that npm accepts. Its bytes depend only on its files and the given time, because the files are sorted and
// have no owners.

import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';

export interface PackedFile {
  readonly bytes: Buffer | string;
  readonly isProgram?: boolean;
}

/** The top-level folder that npm requires in a tarball, and removes when it unpacks the tarball. */
const TOP_FOLDER = 'package';

export async function createTarball(files: ReadonlyMap<string, PackedFile>, at: Date): Promise<Buffer> {
  const tar = pack();
  const archive = buffer(tar.pipe(createGzip({ level: 9 })));
  const sortedFiles = [...files].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [path, { bytes, isProgram }] of sortedFiles)
    tar.entry({ name: `${TOP_FOLDER}/${path}`, mode: isProgram ? 0o755 : 0o644, mtime: at, uid: 0, gid: 0 }, bytes);
  tar.finalize();
  return archive;
}
