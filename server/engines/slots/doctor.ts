// What this machine has of what browsers need, line by line, each with its cure. Examines; mends nothing.
import { mkdirSync, readdirSync, statfsSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { reason } from '../../kit/fault.ts';
import { Cgroups, CONTROLLERS } from './cgroups.ts';
import { findChromium, placesOfChromium, versionOfChromium } from './chromium.ts';
import { cureForUserNamespaces } from './cures.ts';
import { hardLimitOfOpenFiles } from './ground.ts';
import { readInstallId } from './install.ts';
import { jailedForm, layGround, type OpenSlotsWish } from './open-slots.ts';
import { type ProbeResult, probe } from './probe.ts';
import { absentTools, findTool, JAIL_TOOLS, TOOLS } from './tools.ts';
import { userNamespacesRefusal } from './user-namespaces.ts';

export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  /** Whether the server refuses to start, or sessions cannot run, without it. */
  readonly required: boolean;
  readonly detail: string;
  /** Empty when all is well. */
  readonly cure: string;
}

const GIB = 1024 ** 3;
/** Below these a single ordinary session gets into trouble. */
const MEMORY_LEAST_BYTES = GIB;
const DISK_LEAST_BYTES = 2 * GIB;
const OPEN_FILES_LEAST = 4096;

export async function examine(wish: OpenSlotsWish, signal?: AbortSignal): Promise<readonly Finding[]> {
  mkdirSync(wish.dataDir, { recursive: true });
  const jailWanted = wish.isolation !== 'process';
  const chromium = findChromium(wish.chromiumPath);
  return [
    userNamespaces(jailWanted),
    tools(jailWanted),
    await chromiumLine(wish, chromium),
    tool('ffmpeg', false, 'recordings', 'ffmpeg'),
    tool('certutil', false, "sessions with a certificate of one's own", 'libnss3-tools'),
    fonts(),
    cgroups(wish.dataDir),
    memory(),
    disk(wish.dataDir),
    sharedMemory(),
    openFiles(),
    await realThing(wish, jailWanted, chromium, signal),
  ];
}

/** True when nothing that is required is missing. */
export const isHealthy = (findings: readonly Finding[]): boolean =>
  findings.every(({ ok, required }) => ok || !required);

const good = (name: string, required: boolean, detail: string): Finding => ({
  name,
  ok: true,
  required,
  detail,
  cure: '',
});
const bad = (name: string, required: boolean, detail: string, cure: string): Finding => ({
  ...{ name, ok: false, required, detail, cure },
});

const install = (...packages: readonly string[]): string =>
  `Install it: \`apt-get install ${[...new Set(packages)].join(' ')}\`.`;

function userNamespaces(required: boolean): Finding {
  const refusal = userNamespacesRefusal();
  if (refusal === undefined) return good('user namespaces', required, 'can be made');
  return bad('user namespaces', required, refusal, cureForUserNamespaces);
}

function tools(required: boolean): Finding {
  const absent = absentTools(JAIL_TOOLS);
  if (absent.length === 0) return good('system tools', required, JAIL_TOOLS.join(', '));
  return bad('system tools', required, `not found: ${absent.join(', ')}`, install(...absent.map(name => TOOLS[name])));
}

async function chromiumLine(wish: OpenSlotsWish, path: string | undefined): Promise<Finding> {
  const cure = `${install('chromium')} Or name the real binary in BERTH_CHROMIUM.`;
  if (!path) return bad('chromium', true, `not at ${wish.chromiumPath ?? placesOfChromium.join(', ')}`, cure);
  const version = await versionOfChromium(path);
  return version
    ? good('chromium', true, `${version} at ${path}`)
    : bad('chromium', true, `${path} does not run`, cure);
}

function tool(name: string, required: boolean, purpose: string, fromPackage: string): Finding {
  const path = findTool(name);
  return path
    ? good(name, required, path)
    : bad(name, required, `not found; needed for ${purpose}`, install(fromPackage));
}

function fonts(): Finding {
  const folders = ['/usr/share/fonts', '/usr/local/share/fonts'].filter(path => listed(path).length > 0);
  if (folders.length > 0) return good('fonts', false, folders.join(', '));
  return bad(
    'fonts',
    false,
    'none: pages are rendered without letters',
    install('fonts-liberation', 'fonts-noto-color-emoji'),
  );
}

function cgroups(dataDir: string): Finding {
  const found = new Cgroups(readInstallId(dataDir));
  found.close();
  const present = CONTROLLERS.filter(controller => !found.absent.includes(controller));
  const detail = `${present.join(', ') || 'no controllers'}${found.versions.length > 0 ? ` (v${found.versions.join(' and v')})` : ''}`;
  if (found.absent.length === 0) return good('cgroups', false, detail);
  return bad(
    'cgroups',
    false,
    `${detail}; cannot be used: ${found.absent.join(', ')}`,
    'Sessions run, but are bounded less well. Start as root, or delegate a cgroup to this user (systemd: Delegate=yes in the unit).',
  );
}

function memory(): Finding {
  const [all, free] = [totalmem(), freemem()];
  const detail = `${gib(all)} in all, ${gib(free)} free`;
  if (all >= MEMORY_LEAST_BYTES) return good('memory', false, detail);
  return bad(
    'memory',
    false,
    detail,
    'A session takes 150 MiB when idle and often 500 MiB: lower BERTH_SLOTS, or add memory.',
  );
}

function disk(dataDir: string): Finding {
  const { bavail, bsize } = statfsSync(dataDir);
  const detail = `${gib(bavail * bsize)} free at ${dataDir}`;
  if (bavail * bsize >= DISK_LEAST_BYTES) return good('disk', false, detail);
  return bad('disk', false, detail, 'Free some space, or point BERTH_DATA_DIR elsewhere.');
}

/** A jail mounts its own; only browsers without one use the machine's. */
function sharedMemory(): Finding {
  try {
    const { blocks, bsize } = statfsSync('/dev/shm');
    return good('/dev/shm', false, `${gib(blocks * bsize)}; boxes have their own`);
  } catch (error) {
    return bad('/dev/shm', false, reason(error), 'Mount a tmpfs there. Jailed sessions do without it.');
  }
}

function openFiles(): Finding {
  const most = hardLimitOfOpenFiles();
  if (most >= OPEN_FILES_LEAST) return good('open files', false, `at most ${most}`);
  return bad(
    'open files',
    false,
    `at most ${most}`,
    `Raise the limit to ${OPEN_FILES_LEAST} (ulimit -Hn; systemd: LimitNOFILE=).`,
  );
}

async function realThing(
  wish: OpenSlotsWish,
  jailWanted: boolean,
  chromium: string | undefined,
  signal?: AbortSignal,
): Promise<Finding> {
  const form = jailWanted ? jailedForm() : 'process';
  const name = `a browser in a box (${form})`;
  if (!chromium) return bad(name, true, 'not tried: there is no Chromium', 'See chromium.');
  mkdirSync(`${wish.dataDir}/sessions`, { recursive: true, mode: 0o711 });
  const result = await tried(wish, form, chromium, signal);
  if (result.ok) return good(name, true, 'started, jailed as it should be, ended');
  return bad(name, true, result.why, result.cure);
}

async function tried(
  wish: OpenSlotsWish,
  form: 'root' | 'rootless' | 'process',
  chromium: string,
  signal?: AbortSignal,
): Promise<ProbeResult> {
  try {
    const ground = layGround(wish, form);
    const result = await probe(ground, chromium, signal);
    await ground.close();
    return result;
  } catch (error) {
    return { ok: false, why: reason(error), cure: '' };
  }
}

const gib = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
