// The version of this program, from package.json, and the prefix with which its commands are run in this installation.
import { readFileSync } from 'node:fs';

const PACKAGE_URL = new URL('../package.json', import.meta.url);

interface PackageInfo {
  readonly version: string;
  /** Present only in a release. `npm install` installs a release as the command `berth`. */
  readonly commit?: string;
}

const readPackage = (): PackageInfo => JSON.parse(readFileSync(PACKAGE_URL, 'utf8')) as PackageInfo;

export const version = (): string => readPackage().version;

/**
 * Returns what a user types before the name of a command: `berth` in a release, and `npm run -s berth --` in a
 * checkout.
 */
export const commandPrefix = (): string => (readPackage().commit === undefined ? 'npm run -s berth --' : 'berth');
