// The profiles that `berth login` stores, in a file that only its owner can read.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';

export const PROFILE_DEFAULT = 'default';

const Profile = Type.Object({
  /** The credentials of the profile are sent only to this address. */
  server: Type.String(),
  token: Type.Optional(
    Type.Object({
      id: Type.String(),
      value: Type.String(),
      /** Whether `berth login` created the token, in which case `berth logout` revokes it. */
      isOwn: Type.Boolean(),
      expiresAt: Type.Optional(Type.String()),
    }),
  ),
  key: Type.Optional(Type.Object({ id: Type.String(), value: Type.String(), applicationId: Type.String() })),
});
export type Profile = Static<typeof Profile>;

const StoredProfiles = Type.Object({ version: Type.Literal(1), profiles: Type.Record(Type.String(), Profile) });
type StoredProfiles = Static<typeof StoredProfiles>;

/** Returns `$XDG_CONFIG_HOME/berth/credentials.json`. Uses `~/.config` if XDG_CONFIG_HOME is not an absolute path. */
export function credentialsFile({ env }: Terminal): string {
  const { XDG_CONFIG_HOME, HOME } = env;
  const folder = XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(HOME || homedir(), '.config');
  return join(folder, 'berth', 'credentials.json');
}

export const readProfile = (terminal: Terminal, name: string): Profile | undefined => {
  const { profiles } = readStoredProfiles(credentialsFile(terminal));
  return Object.hasOwn(profiles, name) ? profiles[name] : undefined;
};

/** `undefined` removes the profile. */
export function writeProfile(terminal: Terminal, name: string, profile: Profile | undefined): void {
  const file = credentialsFile(terminal);
  const otherProfiles = Object.entries(readStoredProfiles(file).profiles).filter(([other]) => other !== name);
  const profiles = Object.fromEntries(profile ? [...otherProfiles, [name, profile]] : otherProfiles);
  if (Object.keys(profiles).length === 0) return rmSync(file, { force: true });
  writeStoredProfiles(file, { version: 1, profiles });
}

function readStoredProfiles(file: string): StoredProfiles {
  const text = readTextFile(file);
  if (text === undefined) return { version: 1, profiles: {} };
  const storedValue = parseJson(text);
  if (Check(StoredProfiles, storedValue)) return storedValue;
  throw new CommandFailed(
    EXIT.failed,
    `${file} is not a valid credentials file. Remove it, and run \`berth login\` again.`,
  );
}

/**
 * Writes to a temporary file first, so that nobody reads an incomplete file. The mode of the temporary file is set
 * before its first byte is written.
 */
function writeStoredProfiles(file: string, contents: StoredProfiles): void {
  const temporaryFile = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    rmSync(temporaryFile, { force: true });
    writeFileSync(temporaryFile, `${JSON.stringify(contents, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporaryFile, file);
  } catch (error) {
    throw new CommandFailed(EXIT.failed, `${file} cannot be written: ${reasonOf(error)}`);
  }
}

function readTextFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CommandFailed(EXIT.failed, `${file} cannot be read: ${reasonOf(error)}`);
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
