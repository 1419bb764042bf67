// The version of this program, from package.json.
import { readFileSync } from 'node:fs';

const PACKAGE = new URL('../package.json', import.meta.url);

export const version = (): string => {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  return version;
};
