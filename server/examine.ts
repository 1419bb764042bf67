// The checks of `berth doctor`. Settings and the database are checked here, and browsers in engines/slots. The checks
// change nothing.
import { type Config, readConfig } from './config.ts';
import { examine as examineMachine, type Finding } from './engines/slots/doctor.ts';
import { dataFolderStatus } from './engines/store/data-folder-status.ts';
import { systemClock } from './kit/clock.ts';
import { BadConfig } from './kit/environment.ts';
import { reason } from './kit/fault.ts';
import { silentLog } from './kit/log.ts';
import { openDatabase } from './wiring/runtime.ts';
import { slotOptions } from './wiring/slots.ts';

export type { Finding };

const RUNTIME = { clock: systemClock, log: silentLog };
const NODE_VERSION_MIN = [24, 15] as const;

export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  const config = readSettings(env);
  if (!('dataDir' in config)) return [nodeFinding(), config];
  const machine = await examineMachine(slotOptions(config, RUNTIME)).catch((error: unknown) => [
    createFinding('machine', false, reason(error), 'Fix the reported problem, and run the check again.'),
  ]);
  return [
    nodeFinding(),
    createFinding('settings', true, 'can be read'),
    ...(await databaseFindings(config)),
    ...machine,
  ];
}

function readSettings(env: Readonly<Record<string, string | undefined>>): Config | Finding {
  try {
    return readConfig(env);
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    return createFinding('settings', false, error.message, 'Correct the variable, or unset it to use its default.');
  }
}

function nodeFinding(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isSupported = major > NODE_VERSION_MIN[0] || (major === NODE_VERSION_MIN[0] && minor >= NODE_VERSION_MIN[1]);
  return createFinding(
    'node',
    isSupported,
    process.versions.node,
    `Use Node ${NODE_VERSION_MIN.join('.')} or later; \`npm run berth\` uses it.`,
  );
}

async function databaseFindings(config: Config): Promise<readonly Finding[]> {
  return config.databaseUrl ? externalDatabaseFindings(config) : [await embeddedDatabaseFinding(config.dataDir)];
}

async function externalDatabaseFindings(config: Config): Promise<readonly Finding[]> {
  const cure = 'Check DATABASE_URL, and check that its server runs PostgreSQL 15 or later and accepts this user.';
  try {
    const store = await openDatabase(RUNTIME, config, { isBesideServer: true });
    try {
      await store.ping();
    } finally {
      await store.close();
    }
    return [createFinding('database', true, 'the server at DATABASE_URL responds'), auditLogFinding(store.isConfined)];
  } catch (error) {
    return [createFinding('database', false, reason(error), cure)];
  }
}

const auditLogFinding = (isConfined: boolean): Finding => ({
  name: 'audit log',
  ok: isConfined,
  required: false,
  detail: isConfined
    ? 'the server can only add entries to it'
    : 'it is protected only by triggers, which the user in DATABASE_URL can drop',
  cure: isConfined ? '' : 'Grant that user CREATEROLE, so that Berth can create a role with fewer rights.',
});

async function embeddedDatabaseFinding(dataDir: string): Promise<Finding> {
  try {
    const { binaries, clusterMajor, owner } = await dataFolderStatus(dataDir);
    const usageNote = owner === undefined || owner === 'unknown' ? '' : `, in use by process ${owner.pid}`;
    if (binaries)
      return createFinding('database', true, `PostgreSQL ${binaries.version} at ${binaries.folder}${usageNote}`);
    const mismatch = `the data folder was created by PostgreSQL ${clusterMajor}, which is not installed`;
    return createFinding(
      'database',
      false,
      mismatch,
      `Install PostgreSQL ${clusterMajor}, or set BERTH_DATA_DIR to another folder.`,
    );
  } catch (error) {
    return createFinding('database', false, reason(error), 'Run `npm ci`, or set DATABASE_URL.');
  }
}

const createFinding = (name: string, ok: boolean, detail: string, cure = ''): Finding => ({
  ...{ name, ok, required: true, detail, cure: ok ? '' : cure },
});
