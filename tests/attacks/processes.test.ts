// The privileges of each process that reads data from a page: user, capabilities and namespaces, read from /proc while
// a session is being recorded. docs/security.md describes them.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { CdpClient } from '../harness/cdp.ts';
import { encoderPidsOf } from '../harness/encoders.ts';
import { openPages } from '../harness/pages.ts';
import { listReplays } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { browserProcessOf, processesOf } from '../harness/session-processes.ts';
import { eventually, WAIT_TIMEOUT_MS } from '../harness/until.ts';

/** Length of the recording, long enough to keep ffmpeg busy. */
const RECORDING_MS = 3_000;

const pages = await openPages({
  '/moving': `<!doctype html><title>Moving</title><p>0</p><script>
    let n = 0; setInterval(() => { document.querySelector('p').textContent = ++n; }, 200);</script>`,
});
const server = await startServer({ pages });

/** The value of `Seccomp:` in /proc/PID/status if a filter is installed. */
const SECCOMP_FILTER = '2';
/** The state LISTEN in /proc/PID/net/tcp. */
const LISTEN_STATE = '0A';

interface ProcessFacts {
  readonly pid: number;
  readonly uid: number;
  readonly noNewPrivileges: boolean;
  readonly seccomp: string;
  readonly filters: number;
  readonly capabilities: string;
  readonly network: string;
}

interface EncoderFacts extends ProcessFacts {
  /** The entries of the process's root folder. */
  readonly root: readonly string[];
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, 'utf8');
const fieldOf = (status: string, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? '';
const networkOf = (pid: number | 'self'): string => readlinkSync(`/proc/${pid}/ns/net`);

function readFacts(pid: number): ProcessFacts {
  const status = statusOf(pid);
  return {
    pid,
    uid: Number(fieldOf(status, 'Uid')),
    noNewPrivileges: fieldOf(status, 'NoNewPrivs') === '1',
    seccomp: fieldOf(status, 'Seccomp'),
    filters: Number(fieldOf(status, 'Seccomp_filters')),
    capabilities: fieldOf(status, 'CapEff'),
    network: networkOf(pid),
  };
}

function readEncoderFacts(): EncoderFacts | undefined {
  const [pid] = encoderPidsOf(server.pid);
  return pid === undefined ? undefined : readFactsWhileStopped(pid);
}

/** Reads the properties of the process while it is stopped. Undefined if the process has ended. */
function readFactsWhileStopped(pid: number): EncoderFacts | undefined {
  try {
    process.kill(pid, 'SIGSTOP');
    const facts = { ...readFacts(pid), root: readdirSync(`/proc/${pid}/root/`) };
    process.kill(pid, 'SIGCONT');
    return facts;
  } catch {
    return undefined;
  }
}

/**
 * Waits for the encoder. It runs for a fraction of a second, so this polls without delay while there is something to
 * encode.
 */
async function waitForEncoder(isAtWork: () => boolean): Promise<EncoderFacts | undefined> {
  const deadlineMs = performance.now() + WAIT_TIMEOUT_MS;
  while (isAtWork() && performance.now() < deadlineMs) {
    const facts = readEncoderFacts();
    if (facts) return facts;
    await setImmediate();
  }
  return undefined;
}

test('ffmpeg runs without access to files, network or privileges of the server', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/moving` }, page);
  const pageFolder = join(server.dataDir, 'recordings', id, '0');
  await eventually('the page to be recorded', () => existsSync(pageFolder));
  await setTimeout(RECORDING_MS);
  const encoderFacts = waitForEncoder(() => existsSync(pageFolder));
  await server.release(id);
  const [ffmpeg] = await Promise.all([encoderFacts, listReplays(server, id)]); // Reading the replays starts ffmpeg.
  assert.notEqual(ffmpeg?.uid, process.getuid?.() === 0 ? 0 : undefined);
  assert.deepEqual([ffmpeg?.noNewPrivileges, ffmpeg?.seccomp], [true, SECCOMP_FILTER]);
  assert.match(ffmpeg?.capabilities ?? '', /^0+$/);
  assert.notEqual(ffmpeg?.network, networkOf('self'));
  assert.deepEqual(
    ffmpeg?.root.filter(name => !['usr', 'lib', 'lib64', 'etc'].includes(name)),
    [],
  );
});

/**
 * Returns the kind and the properties of a process of Chromium. The list is empty if the process has ended or is not
 * part of Chromium.
 */
function readKindAndFacts(pid: number): ReadonlyArray<readonly [kind: string, ProcessFacts]> {
  try {
    const isChromium = readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('chrom');
    return isChromium ? [[kindOf(pid), readFacts(pid)]] : [];
  } catch {
    return [];
  }
}

/**
 * The process type from Chromium's command line: the sub-type of a utility process, and `browser` for the main process,
 * which has no type.
 */
const kindOf = (pid: number): string => {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  const [, type = 'browser'] = /--type=(\S+)/.exec(command) ?? [];
  const [, service] = /--utility-sub-type=(\S+)/.exec(command) ?? [];
  return service ?? type;
};

test('every browser process runs with no_new_privs and the seccomp filter, and renderers also with the filter of Chromium', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: pages.a }, page);
  const expectedKinds = ['browser', 'zygote', 'gpu-process', 'network.mojom.NetworkService', 'renderer'];
  const all = await eventually(
    `${expectedKinds}, and all renderers also under the filter of Chromium`,
    () => processesOf(id).flatMap(({ pid }) => readKindAndFacts(pid)),
    found => {
      for (const [kind, { noNewPrivileges, seccomp }] of found)
        assert.deepEqual([noNewPrivileges, seccomp], [true, SECCOMP_FILTER], kind);
      // A renderer that has just started does not have Chromium's own filter yet.
      return (
        expectedKinds.every(kind => found.some(([one]) => one === kind)) &&
        found.every(([kind, { filters }]) => kind !== 'renderer' || filters > 1)
      );
    },
  );
  assert.equal(all.find(([kind]) => kind === 'browser')?.[1].filters, 1);
  await client.close();
  await server.release(id);
});

/** The TCP listeners in the network namespace of the process, each as `ADDRESS:PORT`. */
const findListeners = (pid: number): string[] =>
  ['tcp', 'tcp6'].flatMap(protocol => {
    const lines = readFileSync(`/proc/${pid}/net/${protocol}`, 'utf8').split('\n').slice(1);
    return lines.flatMap(line => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      const [address = '', port = ''] = local.split(':');
      return state === LISTEN_STATE ? [`${addressOf(address)}:${Number.parseInt(port, 16)}`] : [];
    });
  });

/** Decodes an IPv4 address, whose bytes the kernel writes in reverse order. */
const addressOf = (hex: string): string => (hex.length > 8 ? hex : [...Buffer.from(hex, 'hex')].reverse().join('.'));

test('only the egress proxy listens in the network namespace of a browser, so there is no debugging port', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  await client.send('Browser.getVersion');
  const { pid, command } = browserProcessOf(id);
  const [, proxy] = /--proxy-server=(?:http:\/\/)?(127\.0\.0\.1:\d+)/.exec(command) ?? [];
  assert.notEqual(networkOf(pid), networkOf('self'));
  assert.deepEqual(findListeners(pid), [proxy]);
  assert.match(command, / --remote-debugging-pipe/);
  await client.close();
  await server.release(id);
});
