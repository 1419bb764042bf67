// The identity of an installation: a host id in its data folder, and a secret in the shared folder, which is the data
// folder by default. Operators may set the secret instead. Both files have mode 0600. The server or an operator's
// command creates them, whichever runs first.
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from './config.ts';
import type { Clock } from './kit/clock.ts';
import { readIfPresent, readOrCreate } from './kit/created-file.ts';
import { hasCode } from './kit/durable.ts';
import { Fault, reason } from './kit/fault.ts';
import { type HostId, isUuid, newId } from './kit/ids.ts';
import { Secret } from './kit/secret.ts';

export interface Installation {
  /**
   * Identifies the rows of this host. It stays the same after a restart, so that the server finds its sessions again.
   */
  readonly host: HostId;
  /** Used to sign connect keys and cursors. Anyone who has this secret can control every session. */
  readonly secret: Secret;
}

const SECRET_BYTES = 32;

export function readInstallation(
  { dataDir, sharedDir = dataDir, secret }: Pick<Config, 'dataDir' | 'secret'> & Partial<Pick<Config, 'sharedDir'>>,
  clock: Clock,
): Installation {
  makeDataFolder(dataDir);
  return { host: readOrCreateHostId(dataDir, clock), secret: secret ?? readOrCreateSecret(sharedDir) };
}

/** @throws Fault `data_folder_unusable` if the folder cannot be created or written to. */
function makeDataFolder(folder: string): void {
  try {
    makeEachFolder(folder);
    if (!statSync(folder).isDirectory()) throw new Error('it is not a folder');
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Fault('data_folder_unusable', `The data folder ${folder} cannot be used: ${reason(error)}.`, {
      advice: 'Set BERTH_DATA_DIR to a folder that this user can write to.',
    });
  }
}

/**
 * Creates one level at a time, because Node's recursive mkdir never returns if a file system, such as /proc, reports
 * that an existing parent is missing.
 */
function makeEachFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeEachFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error; // EEXIST: another process created the folder first
  }
}

/** Undefined if no host has used the folder. */
export function hostIdIn(dataDir: string): HostId | undefined {
  const text = readIfPresent(join(dataDir, 'host-id')) ?? '';
  return isUuid(text) ? (text as HostId) : undefined;
}

function readOrCreateHostId(dataDir: string, clock: Clock): HostId {
  const text = readOrCreate(join(dataDir, 'host-id'), () => newId<HostId>(clock.now()));
  if (!isUuid(text))
    throw invalidContentFault(
      join(dataDir, 'host-id'),
      'the id of a host (a UUID)',
      'The sessions that were running are then lost.',
    );
  return text as HostId; // Checked by isUuid.
}

function readOrCreateSecret(dataDir: string): Secret {
  const text = readOrCreate(join(dataDir, 'secret'), () => randomBytes(SECRET_BYTES).toString('hex'));
  if (text.length < 2 * SECRET_BYTES)
    throw invalidContentFault(
      join(dataDir, 'secret'),
      `a secret of at least ${2 * SECRET_BYTES} characters`,
      'Running sessions, links that were issued, and contexts that were saved by versions without a vault are then lost.',
    );
  return new Secret(text);
}

const invalidContentFault = (file: string, expected: string, loss: string): Fault =>
  new Fault('data_folder_unusable', `${file} does not contain ${expected}.`, {
    advice: `Restore the file from a backup. If there is no backup, remove it and start the server again, which creates a new one. ${loss}`,
  });
