// Sends several files as one zip archive. The archive is written while it is being sent: one file is open at a time,
// and nothing is stored.
import { PassThrough, Readable } from 'node:stream';
import yazl from 'yazl';
import type { ServedFile } from '../../domain/files/served-file.ts';
import { Pace } from '../../kit/pace.ts';

/** Without compression: downloads are mostly compressed already, and sizes are known in advance. */
const UNCOMPRESSED = { compress: false } as const;

export function createArchive(files: readonly ServedFile[]): Readable {
  const zip = new yazl.ZipFile();
  const archiveStream = new PassThrough();
  let currentBody: Readable | undefined;
  archiveStream.once('close', () => currentBody?.destroy()); // `close` is also emitted if the caller disconnects
  zip.on('error', (error: Error) => archiveStream.destroy(error));
  zip.outputStream.pipe(archiveStream);
  const openNext = async (file: ServedFile): Promise<Readable> => {
    currentBody = await openBytes(file);
    if (archiveStream.destroyed) currentBody.destroy();
    return currentBody;
  };
  addAll(zip, files, openNext, archiveStream).catch(error => archiveStream.destroy(error));
  return archiveStream;
}

/** Adds entries in several turns of the event loop, because there may be thousands. */
async function addAll(
  zip: yazl.ZipFile,
  files: readonly ServedFile[],
  openFile: (file: ServedFile) => Promise<Readable>,
  output: Readable,
): Promise<void> {
  const names = new UniqueNames();
  const pace = new Pace();
  for (const file of files) {
    if (pace.isDue) await pace.rest();
    if (output.destroyed) return;
    const entryOptions = { ...UNCOMPRESSED, mtime: file.createdAt, size: file.size };
    zip.addReadStreamLazy(names.makeUnique(file.name), entryOptions, provide => {
      openFile(file).then(
        body => provide(null, body),
        error => provide(error, Readable.from([])),
      );
    });
  }
  zip.end();
}

/**
 * If a file has been deleted in the meantime, the archive fails, so that an incomplete archive is not mistaken for a
 * complete one.
 */
async function openBytes(file: ServedFile): Promise<Readable> {
  if (file.size === 0) return Readable.from([]);
  const openedFile = await file.open();
  if (!openedFile) throw new Error(`the file ${file.name} was deleted while the archive was being created`);
  return openedFile.body;
}

/**
 * Creates unique names: `report.pdf`, `report (1).pdf`, … Stores the last number of each name, because thousands of
 * names may be equal.
 */
class UniqueNames {
  readonly #usedNames = new Set<string>();
  readonly #lastNumbers = new Map<string, number>();

  makeUnique(name: string): string {
    const dot = name.lastIndexOf('.');
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
    let number = this.#lastNumbers.get(name) ?? 0;
    let uniqueName = name;
    for (; this.#usedNames.has(uniqueName); number += 1) uniqueName = `${stem} (${number + 1})${extension}`;
    this.#lastNumbers.set(name, number);
    this.#usedNames.add(uniqueName);
    return uniqueName;
  }
}
