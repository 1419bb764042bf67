// Chromium on Linux takes its locale (for dates, numbers and Intl) from the environment, and accepts only locales for
// which it has a file of UI strings. A copy of the English file under the name of the locale makes any locale work
// (tested with nine).
import { access, copyFile, link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { type SharedFolder, SharedFolders } from './shared-folders.ts';

const ENGLISH = 'en-US';
/** Maximum number of unused locale folders. They contain hard links to one file and take almost no disk space. */
const UNUSED_LOCALES_MAX = 16;

export interface LocaleFolder {
  /** Mounted over Chromium's own `locales` folder. Empty if that folder is sufficient. */
  readonly mounts: ReadonlyArray<{ readonly from: string; readonly to: string }>;
  readonly env: Readonly<Record<string, string>>;
  /** Must be called when the browser has ended. */
  release(): void;
}

/**
 * Returns the locale without private-use subtags and without subtags that ICU does not support. Returns `en-US` if ICU
 * does not support the locale at all.
 */
export function knownLocale(locale: string): string {
  const [supportedLocale] = Intl.DateTimeFormat.supportedLocalesOf([locale]);
  return supportedLocale === undefined ? ENGLISH : new Intl.DateTimeFormat(supportedLocale).resolvedOptions().locale;
}

export class LocaleFolders {
  readonly #folders: SharedFolders;
  /**
   * The folder for copies of the English file. It is on the same file system as the locale folders, which contain hard
   * links to the copies.
   */
  readonly #copiesFolder: string;

  readonly #runningCopies = new SingleFlight<string, string>();

  constructor(folder: string, lifetimeMs: number, clock: Clock) {
    const parent = join(folder, 'locales');
    const bounds = { unusedMax: UNUSED_LOCALES_MAX, unusedBytesMax: Number.POSITIVE_INFINITY };
    this.#folders = new SharedFolders({ parent, ...bounds, bytesOf: async () => 0, lifetimeMs, clock });
    this.#copiesFolder = join(folder, 'texts');
  }

  async prepare(executable: string, requestedLocale: string): Promise<LocaleFolder> {
    const locale = knownLocale(requestedLocale);
    const chromiumLocales = join(dirname(executable), 'locales');
    const englishFile = join(chromiumLocales, `${ENGLISH}.pak`);
    const env = { LANGUAGE: locale.replaceAll('-', '_') };
    if (locale === ENGLISH || !(await fileExists(englishFile))) return { mounts: [], env, release: () => {} };
    const { path, release } = await this.#folder(locale, englishFile);
    return { mounts: [{ from: path, to: chromiumLocales }], env, release };
  }

  async #folder(locale: string, englishFile: string): Promise<SharedFolder> {
    return this.#folders.use(locale, async folder => {
      const copy = await this.#copyOf(englishFile);
      for (const name of [ENGLISH, locale]) await linkTo(copy, join(folder, `${name}.pak`));
    });
  }

  /**
   * Returns a copy of the English file. After an upgrade of Chromium, a new copy is made. Running browsers keep the old
   * copy.
   */
  async #copyOf(englishFile: string): Promise<string> {
    const { size, mtimeMs } = await stat(englishFile);
    const copy = join(this.#copiesFolder, `${size}-${Math.trunc(mtimeMs)}.pak`);
    if (await fileExists(copy)) return copy;
    return this.#runningCopies.run(copy, () => this.#copy(englishFile, copy));
  }

  async #copy(englishFile: string, copy: string): Promise<string> {
    await rm(this.#copiesFolder, { recursive: true, force: true });
    await mkdir(this.#copiesFolder, { recursive: true, mode: 0o755 });
    await copyFile(englishFile, `${copy}.new`);
    await rename(`${copy}.new`, copy);
    return copy;
  }
}

async function linkTo(file: string, path: string): Promise<void> {
  const [sourceStats, existingStats] = await Promise.all([stat(file), stat(path).catch(() => undefined)]);
  if (existingStats?.ino === sourceStats.ino) return;
  await rm(path, { force: true });
  await link(file, path);
}

const fileExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
