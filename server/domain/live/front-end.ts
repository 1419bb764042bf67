// The DevTools front-end files: one folder for each version of Chromium, created when DevTools is first opened and
// never changed. The function that reads the files out of Chromium is passed in.
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { fault } from '../faults.ts';

/** Time limit for creating a folder on a busy machine, including the start of Chromium and reading about 700 files. */
const BUILD_TIMEOUT_MS = 60_000;
/**
 * Maximum number of versions to keep: the newest, and older versions that running sessions still need after an upgrade
 * of Chromium.
 */
const VERSIONS_MAX = 3;
const FOLDER_PATTERN = /^[\w.-]{1,64}$/;
const COMPRESSED_PATTERN = /\.(?:js|css|html|json|svg|md)$/;
const compress = promisify(gzip);

export interface FrontEndFiles {
  /** The product that Chromium reported when the files were read from it, for example `Chrome/156.0.1.2`. */
  readonly product: string;
  readonly files: ReadonlyMap<string, Buffer>;
}

export interface FrontEndParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly folder: string;
  /** Starts the installed Chromium and reads the files out of it. */
  readonly read: (box: SessionId, signal: AbortSignal) => Promise<FrontEndFiles>;
}

export class FrontEnd {
  readonly #parts: FrontEndParts;
  readonly #builds = new SingleFlight<string, string>();
  /**
   * Maps Chromium versions whose files are no longer available to the installed version, whose files are used instead.
   */
  readonly #fallbacks = new Map<string, string>();
  readonly #closeController = new AbortController();

  constructor(parts: FrontEndParts) {
    this.#parts = parts;
  }

  /** The name of the folder with the files for a browser product. Creates the folder if necessary. */
  async of(product: string): Promise<string> {
    const name = folderNameOf(product);
    if (this.folderOf(name)) return name;
    const fallback = this.#fallbacks.get(name);
    if (fallback !== undefined && this.folderOf(fallback)) return fallback;
    const createdName = await this.#builds.run('', () => this.#unpack());
    if (createdName !== name) this.#fallbacks.set(name, createdName);
    return createdName;
  }

  /** The path of a folder, or undefined if it does not exist. */
  folderOf(name: string): string | undefined {
    const folder = join(this.#parts.folder, name);
    return FOLDER_PATTERN.test(name) && !name.startsWith('.') && existsSync(folder) ? folder : undefined;
  }

  /** Aborts the reading of files that is in progress, so that requests that wait for it fail. */
  close(): void {
    this.#closeController.abort(new Error('the service is stopping'));
  }

  async #unpack(): Promise<string> {
    const { read, clock, log } = this.#parts;
    const startMs = clock.monotonicMs();
    const signal = AbortSignal.any([this.#closeController.signal, AbortSignal.timeout(BUILD_TIMEOUT_MS)]);
    try {
      const { product, files } = await read(newId<SessionId>(clock.now()), signal);
      const name = folderNameOf(product);
      await this.#write(name, files);
      log.info('devtools.made', { product, files: files.size, tookMs: Math.round(clock.monotonicMs() - startMs) });
      return name;
    } catch (error) {
      log.warn('devtools.not_made', { reason: reason(error) });
      throw fault(
        'devtools_unavailable',
        'The DevTools files could not be read from Chromium. Try again in a few seconds.',
      );
    }
  }

  /** Writes a temporary folder and renames it when it is complete, so that the change is atomic. */
  async #write(name: string, files: ReadonlyMap<string, Buffer>): Promise<void> {
    const { folder } = this.#parts;
    const temporaryFolder = join(folder, '.new');
    await rm(temporaryFolder, { recursive: true, force: true });
    for (const [path, content] of files) {
      const file = join(temporaryFolder, path);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(file, content, { mode: 0o600 });
      if (COMPRESSED_PATTERN.test(path)) await writeFile(`${file}.gz`, await compress(content), { mode: 0o600 });
    }
    await rm(join(folder, name), { recursive: true, force: true });
    await rename(temporaryFolder, join(folder, name));
    await this.#removeOldFolders(name);
  }

  async #removeOldFolders(newest: string): Promise<void> {
    const { folder } = this.#parts;
    const names = (await readdir(folder)).filter(name => name !== newest);
    const ages = await Promise.all(names.map(async name => ({ name, ms: (await stat(join(folder, name))).mtimeMs })));
    const oldFolders = ages.sort((one, other) => other.ms - one.ms).slice(VERSIONS_MAX - 1);
    for (const { name } of oldFolders) await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Returns the name of the folder for a product: `Chrome/156.0.1.2` → `156.0.1.2`. */
const folderNameOf = (product: string): string =>
  product
    .slice(product.indexOf('/') + 1)
    .replace(/[^\w.-]|^\./g, '_')
    .slice(0, 64);
