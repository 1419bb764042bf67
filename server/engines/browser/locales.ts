// Chromium on Linux takes its locale (dates, numbers, Intl) from the environment, and only one it has a file of texts for.
// A folder with the English texts under the wanted name makes any locale work (tried for nine); texts stay English.
import { access, copyFile, mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const ENGLISH = 'en-US';

export interface LocaleFolder {
  /** To be seen by Chromium in place of its own `locales`; none where it has no such folder. */
  readonly mounts: ReadonlyArray<{ readonly from: string; readonly to: string }>;
  readonly env: Readonly<Record<string, string>>;
}

export async function localeFolder(executable: string, locale: string, folder: string): Promise<LocaleFolder> {
  const own = join(dirname(executable), 'locales');
  const env = { LANGUAGE: locale.replaceAll('-', '_') };
  if (!(await exists(join(own, `${ENGLISH}.pak`)))) return { mounts: [], env };
  const from = join(folder, 'locales', locale);
  await mkdir(from, { recursive: true, mode: 0o755 });
  for (const name of new Set([ENGLISH, locale])) await copyOnce(join(own, `${ENGLISH}.pak`), join(from, `${name}.pak`));
  return { mounts: [{ from, to: own }], env };
}

async function copyOnce(from: string, to: string): Promise<void> {
  if (await exists(to)) return;
  await copyFile(from, `${to}.new`);
  await rename(`${to}.new`, to);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
