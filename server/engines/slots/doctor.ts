// Checks that this machine has what browsers need. Reports one finding per line, with a remedy, and repairs nothing.
// Creates the data folder if it is missing.
import { mkdirSync, readdirSync, statfsSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { reason } from '../../kit/fault.ts';
import { openFilesHardLimit } from './box-host.ts';
import { adviceForMemory, capacityOf, describeCapacity, thisMachine } from './capacity.ts';
import { Cgroups, CONTROLLERS } from './cgroups.ts';
import { ENGINES, explainMissingEngine, findBrowser, readChromiumVersion } from './chromium.ts';
import { cureForUserNamespaces } from './cures.ts';
import { readInstallId } from './install.ts';
import { configuredPath, createBoxHost, jailedForm, type OpenSlotsOptions, requiredEngine } from './open-slots.ts';
import { type ProbedBrowser, type ProbeResult, probe } from './probe.ts';
import type { Engine } from './slots.ts';
import { absentTools, findTool, JAIL_TOOLS, TOOLS } from './tools.ts';
import { userNamespacesRefusal } from './user-namespaces.ts';

export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  /** True if the server cannot start, or sessions cannot run, when this check fails. */
  readonly required: boolean;
  readonly detail: string;
  /** Advice for the operator. Empty when `ok`. */
  readonly cure: string;
}

const GIB = 1024 ** 3;
/** Below these limits, even a single ordinary session may fail. */
const MIN_MEMORY_BYTES = GIB;
const MIN_DISK_BYTES = 2 * GIB;
const MIN_OPEN_FILES = 4096;

export async function examine(options: OpenSlotsOptions, signal?: AbortSignal): Promise<readonly Finding[]> {
  mkdirSync(options.dataDir, { recursive: true });
  const needsJail = options.isolation !== 'process';
  const mainEngine = requiredEngine(options);
  const engines = [mainEngine, ...ENGINES.filter(engine => engine !== mainEngine)];
  return [
    checkUserNamespaces(needsJail),
    checkTools(needsJail),
    ...(await Promise.all(engines.map(engine => checkEngine(options, engine)))),
    checkTool('ffmpeg', false, 'recordings', 'ffmpeg'),
    checkTool('certutil', false, 'sessions with custom certificates', 'libnss3-tools'),
    checkFonts(),
    checkCgroups(options.dataDir),
    checkMemory(mainEngine),
    checkCapacity(options, engines),
    checkDisk(options.dataDir),
    checkSharedMemory(),
    checkOpenFiles(),
    ...(await checkBrowsersInBox(options, needsJail, engines, signal)),
  ];
}

const passedFinding = (name: string, required: boolean, detail: string): Finding => ({
  name,
  ok: true,
  required,
  detail,
  cure: '',
});
const failedFinding = (name: string, required: boolean, detail: string, cure: string): Finding => ({
  ...{ name, ok: false, required, detail, cure },
});

const installAdvice = (...packages: readonly string[]): string =>
  `Install the missing packages: \`apt-get install ${[...new Set(packages)].join(' ')}\`.`;

function checkUserNamespaces(required: boolean): Finding {
  const refusal = userNamespacesRefusal();
  if (refusal === undefined) return passedFinding('user namespaces', required, 'can be created');
  return failedFinding('user namespaces', required, refusal, cureForUserNamespaces);
}

function checkTools(required: boolean): Finding {
  const missingTools = absentTools(JAIL_TOOLS);
  if (missingTools.length === 0) return passedFinding('system tools', required, JAIL_TOOLS.join(', '));
  return failedFinding(
    'system tools',
    required,
    `not found: ${missingTools.join(', ')}`,
    installAdvice(...missingTools.map(name => TOOLS[name])),
  );
}

/**
 * Checks one engine. The check is required only for the engine that is used when a session is created with an empty
 * body.
 */
async function checkEngine(options: OpenSlotsOptions, engine: Engine): Promise<Finding> {
  const required = engine === requiredEngine(options);
  const explicitPath = configuredPath(options, engine);
  const path = findBrowser(engine, explicitPath);
  const { why, cure } = explainMissingEngine(engine, explicitPath);
  if (path === undefined) return failedFinding(engine, required, why, cure);
  const version = await readChromiumVersion(path);
  return version
    ? passedFinding(engine, required, `${version} at ${path}`)
    : failedFinding(engine, required, `${path} does not run`, cure);
}

function checkTool(name: string, required: boolean, purpose: string, packageName: string): Finding {
  const path = findTool(name);
  return path
    ? passedFinding(name, required, path)
    : failedFinding(name, required, `not found; needed for ${purpose}`, installAdvice(packageName));
}

function checkFonts(): Finding {
  const folders = ['/usr/share/fonts', '/usr/local/share/fonts'].filter(path => entriesOf(path).length > 0);
  if (folders.length > 0) return passedFinding('fonts', false, folders.join(', '));
  return failedFinding(
    'fonts',
    false,
    'no fonts were found, so pages are rendered without text',
    installAdvice('fonts-liberation', 'fonts-noto-color-emoji'),
  );
}

function checkCgroups(dataDir: string): Finding {
  const foundCgroups = new Cgroups(readInstallId(dataDir));
  foundCgroups.close();
  const presentControllers = CONTROLLERS.filter(controller => !foundCgroups.absentControllers.includes(controller));
  const detail = `${presentControllers.join(', ') || 'no controllers'}${foundCgroups.versions.length > 0 ? ` (v${foundCgroups.versions.join(' and v')})` : ''}`;
  if (foundCgroups.absentControllers.length === 0) return passedFinding('cgroups', false, detail);
  return failedFinding(
    'cgroups',
    false,
    `${detail}; not usable: ${foundCgroups.absentControllers.join(', ')}`,
    'Sessions run, but with weaker limits. Start the server as root, or delegate a cgroup to this user (systemd: Delegate=yes in the unit).',
  );
}

function checkMemory(engine: Engine): Finding {
  const [totalBytes, freeBytes] = [totalmem(), freemem()];
  const detail = `${gib(totalBytes)} total, ${gib(freeBytes)} free`;
  if (totalBytes >= MIN_MEMORY_BYTES) return passedFinding('memory', false, detail);
  return failedFinding('memory', false, detail, adviceForMemory(engine));
}

/** Reports the capacity for each engine that is installed. `options.size` includes warm browsers. */
function checkCapacity(options: OpenSlotsOptions, engines: readonly Engine[]): Finding {
  const machine = thisMachine();
  const installedEngines = engines.filter(engine => findBrowser(engine, configuredPath(options, engine)) !== undefined);
  const detail = installedEngines.map(engine => describeCapacity(engine, machine)).join('; ');
  const idleCapacity = capacityOf(requiredEngine(options), machine).idleSessions;
  if (idleCapacity >= options.size) return passedFinding('capacity', false, detail);
  const sizeText = `up to ${options.size} browsers are allowed, including warm browsers`;
  return failedFinding('capacity', false, `${detail}; ${sizeText}`, 'Lower BERTH_SLOTS or BERTH_WARM, or add memory.');
}

function checkDisk(dataDir: string): Finding {
  const { bavail, bsize } = statfsSync(dataDir);
  const detail = `${gib(bavail * bsize)} free at ${dataDir}`;
  if (bavail * bsize >= MIN_DISK_BYTES) return passedFinding('disk', false, detail);
  return failedFinding('disk', false, detail, 'Free some space, or set BERTH_DATA_DIR to a folder on another disk.');
}

/** Only browsers without a jail use the machine's /dev/shm. Each jail mounts its own. */
function checkSharedMemory(): Finding {
  try {
    const { blocks, bsize } = statfsSync('/dev/shm');
    return passedFinding('/dev/shm', false, `${gib(blocks * bsize)}; each jail has its own`);
  } catch (error) {
    return failedFinding(
      '/dev/shm',
      false,
      reason(error),
      'Mount a tmpfs at /dev/shm. Sessions in a jail do not need it.',
    );
  }
}

function checkOpenFiles(): Finding {
  const limit = openFilesHardLimit();
  if (limit >= MIN_OPEN_FILES) return passedFinding('open files', false, `at most ${limit}`);
  return failedFinding(
    'open files',
    false,
    `at most ${limit}`,
    `Raise the limit to ${MIN_OPEN_FILES} (ulimit -Hn; systemd: LimitNOFILE=).`,
  );
}

/**
 * Starts each installed engine in a box, one after the other, because these boxes use the same user id. The required
 * engine is included even if it is not installed.
 */
async function checkBrowsersInBox(
  options: OpenSlotsOptions,
  needsJail: boolean,
  engines: readonly Engine[],
  signal?: AbortSignal,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const engine of engines) {
    const path = findBrowser(engine, configuredPath(options, engine));
    if (path !== undefined || engine === requiredEngine(options))
      findings.push(await checkBrowserInBox(options, needsJail, engine, path, signal));
  }
  return findings;
}

async function checkBrowserInBox(
  options: OpenSlotsOptions,
  needsJail: boolean,
  engine: Engine,
  path: string | undefined,
  signal?: AbortSignal,
): Promise<Finding> {
  const form = needsJail ? jailedForm() : 'process';
  const required = engine === requiredEngine(options);
  const name = `${engine === 'chromium' ? 'a browser' : engine} in a box (${form})`;
  if (path === undefined)
    return failedFinding(name, required, `not tested: ${engine} was not found`, `See the line "${engine}".`);
  mkdirSync(`${options.dataDir}/sessions`, { recursive: true, mode: 0o711 });
  const result = await tryProbe(options, form, { engine, path }, signal);
  if (result.ok) return passedFinding(name, required, 'started, was isolated as expected, and ended');
  return failedFinding(name, required, result.why, result.cure);
}

async function tryProbe(
  options: OpenSlotsOptions,
  form: 'root' | 'rootless' | 'process',
  browser: ProbedBrowser,
  signal?: AbortSignal,
): Promise<ProbeResult> {
  try {
    const host = createBoxHost(options, form);
    return await probe(host, browser, signal).finally(() => host.close());
  } catch (error) {
    return { ok: false, why: reason(error), cure: '' };
  }
}

const gib = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
