// As whom PostgreSQL runs. It refuses user id 0, and initdb refuses a user without a name, so where we are either, it
// runs in a user namespace in which our files belong to some named user: no account and no chown is needed.
import { readFile, stat } from 'node:fs/promises';
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

const PROBE_MS = 5_000;
/**
 * Cleared by a change of user, so it is the last program before PostgreSQL. SIGINT is a fast shutdown: SIGTERM would
 * wait for clients, and SIGKILL would need a recovery.
 */
const TIE = ['setpriv', '--pdeathsig', 'INT'];

/** Ourselves; or, as root, the owner of the data folder, so that its server and root's commands can take turns. */
export async function postgresIdentity(dataDir: string): Promise<Identity> {
  const self = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const { uid, gid } = self.uid === 0 ? await stat(dataDir) : self;
  const become = uid === self.uid ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups'];
  const prefix = [...become, ...(await namespace(uid, become, dataDir))];
  return {
    uid,
    gid,
    as: command => [...prefix, ...command],
    tied: command => [...prefix, ...TIE, ...command],
  };
}

/** The start of a command that gives the user another number inside, where the one outside will not do. */
async function namespace(uid: number, become: readonly string[], dataDir: string): Promise<string[]> {
  const named = await namedUsers();
  if (uid !== 0 && named.has(uid)) return [];
  const [inside = 1] = [...named];
  const unshare = ['unshare', '--user', `--map-user=${inside}`, `--map-group=${inside}`];
  const probe = await runProgram([...become, ...unshare, 'true'], { timeoutMs: PROBE_MS });
  if (probe.code === 0) return unshare;
  // Without a name it may still have one in a directory service; initdb will say.
  if (uid !== 0) return [];
  throw new Fault(
    'data_folder_unusable',
    `PostgreSQL does not run as root, and user namespaces are forbidden here (${probe.output}).`,
    {
      advice: `Run Berth as an ordinary user, or give the data folder to one (chown -R USER ${dataDir}): PostgreSQL then runs as that user.`,
    },
  );
}

async function namedUsers(): Promise<Set<number>> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n');
  const ids = lines.map(line => Number(line.split(':')[2]));
  return new Set(ids.filter(id => id > 0));
}
