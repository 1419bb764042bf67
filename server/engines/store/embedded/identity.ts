// As whom PostgreSQL runs. It refuses user id 0, so as root we give it another: the owner of the data folder, or,
// when that is root too, a user namespace in which root's files belong to user 1000 (no account, no chown needed).
import { stat } from 'node:fs/promises';
import { Fault } from '../../../kit/fault.ts';
import { runProgram } from '../run-program.ts';

export interface Identity {
  /** Whom the files that we make for PostgreSQL must belong to, as seen from here. */
  readonly uid: number;
  readonly gid: number;
  /** The command that runs `command` as this identity. */
  as(command: readonly string[]): string[];
  /** The same, and the kernel interrupts it when the thread that started it is gone: a fast, clean shutdown. */
  tied(command: readonly string[]): string[];
}

const UNSHARE = ['unshare', '--user', '--map-user=1000', '--map-group=1000'];
const PROBE_MS = 5_000;
/**
 * Cleared by a change of user, so it comes after that, in the same or a later program. SIGINT is a fast shutdown:
 * SIGTERM would wait for clients, and SIGKILL would need a recovery.
 */
const TIE = ['--pdeathsig', 'INT'];

export async function postgresIdentity(dataDir: string): Promise<Identity> {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return identity(uid, gid, [], ['setpriv', ...TIE]);
  const owner = await stat(dataDir);
  if (owner.uid !== 0) {
    const become = ['setpriv', '--reuid', `${owner.uid}`, '--regid', `${owner.gid}`, '--clear-groups'];
    return identity(owner.uid, owner.gid, become, [...become, ...TIE]);
  }
  await assertUserNamespaces(dataDir);
  return identity(uid, gid, UNSHARE, [...UNSHARE, 'setpriv', ...TIE]);
}

const identity = (uid: number, gid: number, plain: readonly string[], tied: readonly string[]): Identity => ({
  uid,
  gid,
  as: command => [...plain, ...command],
  tied: command => [...tied, ...command],
});

async function assertUserNamespaces(dataDir: string): Promise<void> {
  const probe = await runProgram([...UNSHARE, 'true'], { timeoutMs: PROBE_MS });
  if (probe.code === 0) return;
  throw new Fault(
    'data_folder_unusable',
    `PostgreSQL does not run as root, and user namespaces are forbidden here (${probe.output}).`,
    {
      advice: `Run Berth as an ordinary user, or give the data folder to one (chown -R USER ${dataDir}): PostgreSQL then runs as that user.`,
    },
  );
}
