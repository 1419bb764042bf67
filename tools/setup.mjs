// Prepares a fresh machine: the npm packages of package-lock.json, the pinned Node, the Debian packages.
// Plain JavaScript, because it runs under whatever Node (18 or later) the machine has. It does not start
// the program that it prepares. The npm scripts append `&& exec node_modules/node/bin/node …` to it, so that no launcher
// stays between npm and the server.
//
//   node tools/setup.mjs all        npm packages, Debian packages, and the web console built (npm run dev)
//   node tools/setup.mjs start      all, and the server bundled; prints the program to run (npm start)
//   node tools/setup.mjs test       all, and what only the suite needs (npm test)
//   node tools/setup.mjs slow       all of these, and what only the slow tests need (npm run test:slow)
//   node tools/setup.mjs packages   npm packages only (npm run berth, check, test:unit)
//
// All messages of this script go to standard error, because the next command or the program uses standard output.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const LOCK_TIMEOUT_SECONDS = 900;
const APT_LOCK_TIMEOUT_SECONDS = 300;
const OWN_PATH = fileURLToPath(import.meta.url);

/** Where the server looks for programs and for the browser. The server does not use the caller's PATH either. */
const PROGRAM_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const CHROMIUM_PATHS = [
  '/usr/lib/chromium/chromium',
  '/usr/lib/chromium-browser/chromium-browser',
  '/opt/google/chrome/chrome',
  '/opt/google/chrome-beta/chrome',
  '/opt/chromium.org/chromium/chromium-browser',
];

/**
 * What the machine must have in addition to Node: Debian packages, each with the commands or files that show that it is
 * installed.
 */
const DEBIAN_PACKAGES = [
  { name: 'chromium', needs: 'the browser', anyFile: CHROMIUM_PATHS, unlessSet: 'BERTH_CHROMIUM' },
  {
    name: 'chromium-headless-shell',
    needs: 'the lighter engine',
    anyFile: ['/usr/lib/chromium/chromium-headless-shell'],
    unlessSet: 'BERTH_HEADLESS_SHELL',
    optional: true,
  },
  { name: 'ffmpeg', needs: 'recordings', commands: ['ffmpeg'] },
  { name: 'bubblewrap', needs: 'the jail around each browser', commands: ['bwrap'] },
  { name: 'iproute2', needs: 'the network namespace of each browser', commands: ['ip'] },
  { name: 'perl-base', needs: 'the network namespace of each browser', commands: ['perl'] },
  { name: 'libnss3-tools', needs: 'certificate authorities of a session', commands: ['certutil'] },
  { name: 'util-linux', needs: 'the jail around each browser', commands: ['unshare', 'setpriv', 'nsenter', 'prlimit'] },
  { name: 'mount', needs: 'the jail around each browser', commands: ['mount'] },
  { name: 'coreutils', needs: 'the outside time limit of each browser', commands: ['timeout', 'mkfifo'] },
  {
    name: 'curl',
    needs: 'the suite, and the first request that the service prints',
    commands: ['curl'],
    forTests: true,
  },
  { name: 'openssl', needs: 'the suite', commands: ['openssl'], forTests: true },
  { name: 'passwd', needs: 'the suite', commands: ['useradd', 'userdel'], forTests: true },
  { name: 'microsocks', needs: 'the suite', commands: ['microsocks'], forTests: true },
  { name: 'nginx', needs: 'the suite', commands: ['nginx'], forTests: true },
  { name: 'haproxy', needs: 'the suite', commands: ['haproxy'], forTests: true },
  { name: 'systemd', needs: 'the suite', commands: ['systemd-analyze'], forTests: true },
  { name: 'podman', needs: 'the slow tests', commands: ['podman'], forSlowTests: true },
  { name: 'crun', needs: 'the slow tests', commands: ['crun'], forSlowTests: true },
  { name: 'mmdebstrap', needs: 'the slow tests', commands: ['mmdebstrap'], forSlowTests: true },
  {
    name: 'fonts-liberation',
    needs: 'Latin text',
    anyFile: ['/usr/share/fonts/truetype/liberation', '/usr/share/fonts/truetype/liberation2'],
    optional: true,
  },
  {
    name: 'fonts-noto-core',
    needs: 'text of other scripts',
    anyFile: ['/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf'],
    optional: true,
  },
  {
    name: 'fonts-noto-color-emoji',
    needs: 'emoji',
    anyFile: ['/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf'],
    optional: true,
  },
];

/**
 * Returns the npm packages in the lock file that are missing from node_modules or have another version there. An
 * optional package may be missing.
 */
export function missingNpmPackages(root) {
  const lockedPackages = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  const installedPackages = readJson(join(root, 'node_modules', '.package-lock.json'))?.packages ?? {};
  return Object.entries(lockedPackages)
    .filter(([path, entry]) => path !== '' && !isSatisfied(entry, installedPackages[path], join(root, path)))
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
}

function isSatisfied(lockedPackage, installedPackage, folder) {
  if (!installedPackage) return lockedPackage.optional === true;
  return installedPackage.version === lockedPackage.version && existsSync(folder);
}

const pinnedNode = root => join(root, 'node_modules', 'node', 'bin', 'node');

/** Returns the missing Debian packages. Looks for their files, because a call of dpkg takes longer. */
export function missingDebianPackages(packages = DEBIAN_PACKAGES, env = process.env) {
  const isInstalled = command => PROGRAM_FOLDERS.some(folder => existsSync(join(folder, command)));
  return packages.filter(debianPackage => {
    if (debianPackage.unlessSet && env[debianPackage.unlessSet]) return false;
    if (debianPackage.commands) return !debianPackage.commands.every(isInstalled);
    return !debianPackage.anyFile.some(file => existsSync(file));
  });
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

const say = text => process.stderr.write(`berth setup: ${text}\n`);

function stop(text) {
  say(text);
  process.exit(1);
}

/** The environment without the variables that npm sets for a script, which a nested npm must not use. */
export function cleanEnvironment(env) {
  const scriptVariables =
    /^(npm_(lifecycle|package)_|npm_(command|execpath|node_execpath)$|npm_config_(local_prefix|global|prefix|omit|ignore_scripts)$)/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !scriptVariables.test(name) && name !== 'INIT_CWD'));
}

function run(command, args, options = {}) {
  return spawnSync(command, args, { stdio: ['ignore', 2, 2], ...options });
}

// ---- npm ---------------------------------------------------------------------------------------------------------

function isNpmReady(root) {
  return existsSync(pinnedNode(root)) && missingNpmPackages(root).length === 0;
}

function installNpmPackages(root) {
  const env = cleanEnvironment(process.env);
  const missingPackages = missingNpmPackages(root);
  if (missingPackages.length > 0) {
    say(`installing npm packages (${missingPackages.length} missing) ...`);
    // With --include=dev: without development packages, the first `npm test` would reinstall all packages while a
    // server may be using them.
    const result = run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: root,
      env,
    });
    if (result.error) stop(`npm does not start (${result.error.message}). Install it: apt-get install npm`);
    if (result.status !== 0) stop('`npm ci` failed; its output is above. It needs access to the npm registry.');
  }
  if (!existsSync(pinnedNode(root))) fetchPinnedNode(root, env);
  if (!isNpmReady(root)) stop(`these npm packages are still missing: ${missingNpmPackages(root).join(', ') || 'node'}`);
}

/** Fetches the pinned Node. Its install script runs here even if install scripts are disabled. */
function fetchPinnedNode(root, env) {
  const folder = join(root, 'node_modules', 'node');
  say('fetching the pinned Node ...');
  run(process.execPath, ['installArchSpecificPackage.js'], {
    cwd: folder,
    env: { ...env, npm_config_ignore_scripts: 'false' },
  });
  if (!existsSync(pinnedNode(root)))
    stop('the pinned Node could not be fetched (npm package "node"). Try: npm rebuild node --ignore-scripts=false');
}

// ---- Debian ------------------------------------------------------------------------------------------------------

function installDebianPackages(missingPackages) {
  const names = missingPackages.map(debianPackage => debianPackage.name);
  const prefix = rootPrefix();
  const command = `apt-get install --no-install-recommends ${names.join(' ')}`;
  if (prefix === undefined) return `run as root: apt-get update && ${command}`;
  say(`installing Debian packages: ${names.join(', ')} ...`);
  const env = { ...cleanEnvironment(process.env), DEBIAN_FRONTEND: 'noninteractive' };
  const apt = args =>
    run(prefix[0] ?? 'apt-get', [...prefix.slice(1), ...(prefix.length > 0 ? ['apt-get'] : []), ...args], { env });
  const wait = ['-q', '-o', `DPkg::Lock::Timeout=${APT_LOCK_TIMEOUT_SECONDS}`];
  apt(['update', ...wait]);
  const result = apt(['install', '-y', '--no-install-recommends', ...wait, ...names]);
  return result.status === 0
    ? undefined
    : `apt-get failed; its output is above. To install the packages by hand: apt-get update && ${command}`;
}

/** The command prefix that runs `apt-get` as root. Undefined if there is no way to do so, or no apt-get. */
function rootPrefix() {
  if (!existsSync('/usr/bin/apt-get')) return undefined;
  if (process.getuid?.() === 0) return [];
  const sudo = ['sudo', '-n', '--preserve-env=DEBIAN_FRONTEND'];
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? sudo : undefined;
}

const notesFile = root => join(root, '.berth', 'setup.json');

function writeNotes(root, notes) {
  mkdirSync(dirname(notesFile(root)), { recursive: true });
  writeFileSync(notesFile(root), `${JSON.stringify(notes)}\n`);
}

function packagesFor(mode) {
  if (mode === 'packages') return [];
  const forTests = mode === 'test' || mode === 'slow';
  return DEBIAN_PACKAGES.filter(
    debianPackage => (forTests || !debianPackage.forTests) && (mode === 'slow' || !debianPackage.forSlowTests),
  );
}

/**
 * The Debian packages to install. The service also runs without the optional packages, so the installation of an
 * optional package is tried only once.
 */
function packagesToInstall(root, mode) {
  const triedNames = readTriedNames(root);
  return missingDebianPackages(packagesFor(mode)).filter(
    debianPackage => !debianPackage.optional || !triedNames.includes(debianPackage.name),
  );
}

const readTriedNames = root => readJson(notesFile(root))?.tried ?? [];

function ensureDebianPackages(root, mode) {
  const missingPackages = packagesToInstall(root, mode);
  if (missingPackages.length === 0) return;
  const failure = installDebianPackages(missingPackages);
  const stillMissingPackages = missingDebianPackages(packagesFor(mode));
  const missingRequiredPackages = stillMissingPackages.filter(debianPackage => !debianPackage.optional);
  if (missingRequiredPackages.length > 0) {
    for (const debianPackage of missingRequiredPackages)
      say(`missing: ${debianPackage.name}, for ${debianPackage.needs}`);
    stop(
      failure ??
        `apt-get reported success, but these packages are still missing: ${missingRequiredPackages.map(debianPackage => debianPackage.name).join(' ')}`,
    );
  }
  for (const debianPackage of stillMissingPackages)
    say(`note: ${debianPackage.name} could not be installed, for ${debianPackage.needs}`);
  if (stillMissingPackages.length > 0)
    writeNotes(root, {
      tried: [...new Set([...readTriedNames(root), ...stillMissingPackages.map(debianPackage => debianPackage.name)])],
    });
}

// ---- both --------------------------------------------------------------------------------------------------------

function installPackages(root, mode) {
  if (!isNpmReady(root)) installNpmPackages(root);
  ensureDebianPackages(root, mode);
}

/**
 * Installs under a lock, so that two set-ups of the same folder run one after the other. The kernel releases a flock
 * lock when its holder ends, for whatever reason.
 */
function installWithLock(root, mode) {
  mkdirSync(join(root, '.berth'), { recursive: true });
  const lock = join(root, '.berth', 'setup.lock');
  const lockedCommand = [process.execPath, OWN_PATH, mode, '--locked'];
  const result = run(
    'flock',
    ['--timeout', String(LOCK_TIMEOUT_SECONDS), '--conflict-exit-code', '75', lock, ...lockedCommand],
    {
      cwd: root,
    },
  );
  if (result.error) return installPackages(root, mode);
  if (result.status === 75)
    stop(`another set-up has held ${lock} for ${LOCK_TIMEOUT_SECONDS} s; check whether it hangs`);
  if (result.status !== 0) process.exit(result.status ?? 1);
}

// ---- the build -----------------------------------------------------------------------------------------------------

/**
 * Builds the console and the docs. The service also runs without its console, so a failed build does not end the
 * set-up. The build prints its own output.
 */
function buildWeb(root) {
  const result = run(pinnedNode(root), [join(root, 'tools', 'build-web.ts')], { cwd: root });
  if (result.status !== 0) say('the web console could not be built; the service runs without it');
}

/**
 * Returns the program that `npm start` runs: the server in a bundle, which starts faster and uses less memory than its
 * sources, or the sources if it cannot be bundled.
 */
function prepareProgram(root) {
  const result = spawnSync(pinnedNode(root), [join(root, 'tools', 'bundle-server.ts')], {
    cwd: root,
    stdio: ['ignore', 'pipe', 2],
    encoding: 'utf8',
  });
  if (result.status === 0) return result.stdout.trim();
  say('the server could not be bundled; it runs from its sources');
  return join(root, 'cli', 'berth.ts');
}

function main() {
  const root = dirname(dirname(OWN_PATH));
  const mode = ['packages', 'start', 'test', 'slow'].find(word => word === process.argv[2]) ?? 'all';
  if (Number(process.versions.node.split('.')[0]) < 18)
    stop(`this is Node ${process.versions.node}; 18 or later is needed to install the rest.`);
  if (process.argv.includes('--locked')) return installPackages(root, mode);
  if (!isNpmReady(root) || packagesToInstall(root, mode).length > 0) installWithLock(root, mode);
  if (mode !== 'packages') buildWeb(root);
  if (mode === 'start') process.stdout.write(`${prepareProgram(root)}\n`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) main();
