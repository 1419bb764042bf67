// The sources of master keys: a key is given by the operator, printed by a command that the operator configured, or
// kept in the data folder.
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { promisify } from 'node:util';
import { Fault } from '../../kit/fault.ts';
import type { Secret } from '../../kit/secret.ts';
import { type MasterKey, type MasterKeySource, readMasterKeys } from './master-key.ts';
import { MasterKeyFile } from './master-key-file.ts';

export type MasterKeyOrigin = { readonly given: Secret } | { readonly command: string } | { readonly dataDir: string };

export function masterKeySource(origin: MasterKeyOrigin): MasterKeySource {
  if ('given' in origin)
    return suppliedKeySource('BERTH_MASTER_KEY', async () => readMasterKeys(origin.given.reveal(), 'BERTH_MASTER_KEY'));
  if ('command' in origin) return suppliedKeySource('BERTH_MASTER_KEY_COMMAND', () => runCommand(origin.command));
  return new MasterKeyFile(origin.dataDir);
}

/** The operator changes the master key by listing the new key first, followed by the old one. */
const suppliedKeySource = (name: string, read: () => Promise<readonly MasterKey[]>): MasterKeySource => ({
  name,
  read,
  next: async currentId => {
    const [firstKey] = await read();
    if (firstKey && firstKey.id !== currentId) return firstKey;
    throw new Fault('master_key_unchanged', `The first master key from ${name} is not a new key.`, {
      advice:
        'Supply the new key first and then the old key, separated by a comma, and run `berth vault rotate` again.',
    });
  },
  keepOnly: async () => {},
});

const COMMAND_TIMEOUT_MS = 10_000;
const OUTPUT_BYTES_MAX = 4096;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Runs the command without the environment of the server, which contains other secrets. The command's output is not
 * included in any error.
 */
async function runCommand(command: string): Promise<readonly MasterKey[]> {
  const run = promisify(execFile);
  const limits = { timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const;
  try {
    const { stdout } = await run('/bin/sh', ['-c', command], { ...limits, env: { PATH, HOME: homedir() } });
    return readMasterKeys(stdout, 'The output of BERTH_MASTER_KEY_COMMAND');
  } catch (error) {
    if (error instanceof Fault) throw error;
    const failure = error instanceof Error && 'killed' in error && error.killed ? 'took too long' : 'failed';
    throw new Fault('master_key_unusable', `BERTH_MASTER_KEY_COMMAND ${failure}${codeText(error)}.`, {
      advice: `The command must print the master key within ${COMMAND_TIMEOUT_MS / 1000} seconds and exit with code 0.`,
    });
  }
}

const codeText = (error: unknown): string =>
  error instanceof Error && 'code' in error && (typeof error.code === 'number' || typeof error.code === 'string')
    ? ` with code ${error.code}`
    : '';
