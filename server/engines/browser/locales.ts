// Chromium on Linux takes its locale (dates, numbers, Intl) from the environment, and only one it has a file of texts for.
// A folder with the English texts under the wanted name makes any locale work (tried for nine); texts stay English.
import { access, copyFile, link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { type SharedFolder, SharedFolders } from './shared-folders.ts';

const ENGLISH = 'en-US';
/** Folders of locales that no browser has; all of them share the bytes of one file. */
const UNUSED_LOCALES_MAX = 16;

export interface LocaleFolder {
  /** To be seen by Chromium in place of its own `locales`; none where it needs no such folder. */
  readonly mounts: ReadonlyArray<{ readonly from: string; readonly to: string }>;
  readonly env: Readonly<Record<string, string>>;
  /** The browser has ended. */
  release(): void;
}

/** What a locale asks of dates and numbers: private use, and what ICU does not know, is left out. */
export function knownLocale(locale: string): string {
  const [known] = Intl.DateTimeFormat.supportedLocalesOf([locale]);
  return known === undefined ? ENGLISH : new Intl.DateTimeFormat(known).resolvedOptions().locale;
}

export class LocaleFolders {
  readonly #folders: SharedFolders;
  /** Where the one copy of the texts stands, on the disk of the folders. */
  readonly #copies: string;

  readonly #copying = new SingleFlight<string, string>();

  constructor(folder: string, lifetimeMs: number, clock: Clock) {
    const parent = join(folder, 'locales');
    const bounds = { unusedMax: UNUSED_LOCALES_MAX, unusedBytesMax: Number.POSITIVE_INFINITY };
    this.#folders = new SharedFolders({ parent, ...bounds, bytesOf: async () => 0, lifetimeMs, clock });
    this.#copies = join(folder, 'texts');
  }

  async of(executable: string, wanted: string): Promise<LocaleFolder> {
    const locale = knownLocale(wanted);
    const own = join(dirname(executable), 'locales');
    const texts = join(own, `${ENGLISH}.pak`);
    const env = { LANGUAGE: locale.replaceAll('-', '_') };
    if (locale === ENGLISH || !(await exists(texts))) return { mounts: [], env, release: () => {} };
    const { path, release } = await this.#folder(locale, texts);
    return { mounts: [{ from: path, to: own }], env, release };
  }

  async #folder(locale: string, texts: string): Promise<SharedFolder> {
    return this.#folders.use(locale, async folder => {
      const copy = await this.#copyOf(texts);
      for (const name of [ENGLISH, locale]) await linkTo(copy, join(folder, `${name}.pak`));
    });
  }

  /** Made anew when Chromium was replaced. Browsers that run keep the file that they have. */
  async #copyOf(texts: string): Promise<string> {
    const { size, mtimeMs } = await stat(texts);
    const copy = join(this.#copies, `${size}-${Math.trunc(mtimeMs)}.pak`);
    if (await exists(copy)) return copy;
    return this.#copying.run(copy, () => this.#copy(texts, copy));
  }

  async #copy(texts: string, copy: string): Promise<string> {
    await rm(this.#copies, { recursive: true, force: true });
    await mkdir(this.#copies, { recursive: true, mode: 0o755 });
    await copyFile(texts, `${copy}.new`);
    await rename(`${copy}.new`, copy);
    return copy;
  }
}

async function linkTo(file: string, path: string): Promise<void> {
  const [wanted, found] = await Promise.all([stat(file), stat(path).catch(() => undefined)]);
  if (found?.ino === wanted.ino) return;
  await rm(path, { force: true });
  await link(file, path);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
