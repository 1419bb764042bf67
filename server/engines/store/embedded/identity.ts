// The user that PostgreSQL runs as. PostgreSQL refuses user id 0, and initdb refuses a user without a name. In both
// cases PostgreSQL runs in a user namespace in which our files belong to a named user, without a new account or chown.
import { readFile, stat } from 'node:fs/promises';
import { Fault } from '../../../kit/fault.ts';
import { runProgram } from '../run-program.ts';

export interface PostgresIdentity {
  /** The owner of the files that Berth creates for PostgreSQL, as seen from this process. */
  readonly uid: number;
  readonly gid: number;
  /** The command that runs `command` as this identity. */
  wrapCommand(command: readonly string[]): string[];
  /**
   * Like `wrapCommand`, but the kernel also sends the program SIGINT when the thread that started it ends. SIGINT makes
   * PostgreSQL shut down fast and cleanly.
   */
  wrapWithDeathSignal(command: readonly string[]): string[];
}

const PROBE_TIMEOUT_MS = 5_000;
/**
 * A change of user clears the parent-death signal, so setpriv is the last program before PostgreSQL. SIGINT is a fast
 * shutdown: SIGTERM would wait for clients, and SIGKILL would need a recovery.
 */
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'INT'];

/**
 * Returns the user of this process. If this user is root, returns the owner of the data folder instead, so that the
 * owner's server and root's commands can use the same cluster.
 */
export async function postgresIdentity(dataDir: string): Promise<PostgresIdentity> {
  const ownIds = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const { uid, gid } = ownIds.uid === 0 ? await stat(dataDir) : ownIds;
  const setprivPrefix =
    uid === ownIds.uid ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups'];
  const prefix = [...setprivPrefix, ...(await namespacePrefix(uid, setprivPrefix, dataDir))];
  return {
    uid,
    gid,
    wrapCommand: command => [...prefix, ...command],
    wrapWithDeathSignal: command => [...prefix, ...DIE_WITH_PARENT, ...command],
  };
}

/**
 * Returns the prefix that runs a command under another user id in a user namespace. Returns [] if PostgreSQL can run
 * under `uid` itself.
 */
async function namespacePrefix(uid: number, setprivPrefix: readonly string[], dataDir: string): Promise<string[]> {
  const namedIds = await namedUserIds();
  if (uid !== 0 && namedIds.has(uid)) return [];
  const [mappedId = 1] = [...namedIds];
  const unshareCommand = ['unshare', '--user', `--map-user=${mappedId}`, `--map-group=${mappedId}`];
  const probeResult = await runProgram([...setprivPrefix, ...unshareCommand, 'true'], { timeoutMs: PROBE_TIMEOUT_MS });
  if (probeResult.code === 0) return unshareCommand;
  // The user may have a name in a directory service instead of /etc/passwd. If the user has no name, initdb reports
  // that.
  if (uid !== 0) return [];
  throw new Fault(
    'data_folder_unusable',
    `PostgreSQL cannot run as root, and user namespaces are not allowed on this machine (${probeResult.output}).`,
    {
      advice: `Run Berth as an unprivileged user, or make an unprivileged user the owner of the data folder (chown -R USER ${dataDir}): PostgreSQL then runs as that user.`,
    },
  );
}

async function namedUserIds(): Promise<Set<number>> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n');
  const ids = lines.map(line => Number(line.split(':')[2]));
  return new Set(ids.filter(id => id > 0));
}
