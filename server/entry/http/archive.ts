// Several files as one zip, written while it is sent: one file is open at a time, and nothing is kept.
import { PassThrough, Readable } from 'node:stream';
import yazl from 'yazl';
import type { ServedFile } from '../../domain/files/served-file.ts';

/** Files that are archived are mostly compressed already; like this their sizes are known before. */
const STORED = { compress: false } as const;

export function archiveOf(files: readonly ServedFile[]): Readable {
  const zip = new yazl.ZipFile();
  const names = new Set<string>();
  const sent = new PassThrough();
  for (const file of files) {
    const entry = { ...STORED, mtime: file.createdAt, size: file.size };
    zip.addReadStreamLazy(newName(file.name, names), entry, give => {
      bytesOf(file).then(
        body => {
          sent.once('close', () => body.destroy()); // also where the caller went away
          give(null, body);
        },
        error => give(error, Readable.from([])),
      );
    });
  }
  zip.end();
  zip.on('error', (error: Error) => sent.destroy(error));
  zip.outputStream.pipe(sent);
  return sent;
}

/** One that was deleted meanwhile ends the archive: half of it must not look like all of it. */
async function bytesOf(file: ServedFile): Promise<Readable> {
  if (file.size === 0) return Readable.from([]);
  const opened = await file.open();
  if (!opened) throw new Error(`${file.name} is gone`);
  return opened.body;
}

/** `report.pdf`, `report (1).pdf`, … */
function newName(name: string, names: Set<string>): string {
  const dot = name.lastIndexOf('.');
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  let free = name;
  for (let number = 1; names.has(free); number += 1) free = `${stem} (${number})${extension}`;
  names.add(free);
  return free;
}
