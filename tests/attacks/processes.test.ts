// What the kernel says of each process that reads what a page sends: whose it is, what it may do, what it sees. Read from
// /proc while a session is recorded; docs/security.md says the same in words.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CdpClient } from '../harness/cdp.ts';
import { encodersOf } from '../harness/encoders.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { processesOf } from '../harness/session-processes.ts';
import { eventually } from '../harness/until.ts';

/** A slice of the recording is over by then. */
const RECORDED_MS = 3_000;
const SEEN_WITHIN_MS = 60_000;

const pages = await openPages({
  '/moving': `<!doctype html><title>Moving</title><p>0</p><script>
    let n = 0; setInterval(() => { document.querySelector('p').textContent = ++n; }, 200);</script>`,
});
const server = await startServer({ pages });

/** `Seccomp:` of /proc/PID/status: a filter holds. */
const FILTERED = '2';

interface Seen {
  readonly pid: number;
  readonly uid: number;
  readonly noNewPrivileges: boolean;
  readonly seccomp: string;
  readonly filters: number;
  readonly capabilities: string;
  readonly network: string;
}

interface Held extends Seen {
  /** What stands in its root folder. */
  readonly root: readonly string[];
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, 'utf8');
const fieldOf = (status: string, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? '';
const networkOf = (pid: number | 'self'): string => readlinkSync(`/proc/${pid}/ns/net`);

function seen(pid: number): Seen {
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

function encoder(): Held | undefined {
  const [pid] = encodersOf(server.pid);
  return pid === undefined ? undefined : held(pid);
}

/** It may end in the middle of being looked at. */
function held(pid: number): Held | undefined {
  try {
    process.kill(pid, 'SIGSTOP');
    const found = { ...seen(pid), root: readdirSync(`/proc/${pid}/root/`) };
    process.kill(pid, 'SIGCONT');
    return found;
  } catch {
    return undefined;
  }
}

test('ffmpeg, which decodes what a page painted, sees no file, network or right of the server', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: `${pages.url}/moving` }, page);
  await setTimeout(RECORDED_MS);
  const looking = eventually('ffmpeg to run', async () => encoder(), undefined, SEEN_WITHIN_MS);
  await server.release(id);
  const ffmpeg = await looking;
  assert.notEqual(ffmpeg?.uid, process.getuid?.() === 0 ? 0 : undefined);
  assert.deepEqual([ffmpeg?.noNewPrivileges, ffmpeg?.seccomp], [true, FILTERED]);
  assert.match(ffmpeg?.capabilities ?? '', /^0+$/);
  assert.notEqual(ffmpeg?.network, networkOf('self'));
  assert.deepEqual(
    ffmpeg?.root.filter(name => !['usr', 'lib', 'lib64', 'etc'].includes(name)),
    [],
  );
});

/** What Chromium says a process is; the first one says nothing. */
const kindOf = (pid: number): string => {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  const [, type = 'browser'] = /--type=(\S+)/.exec(command) ?? [];
  const [, service] = /--utility-sub-type=(\S+)/.exec(command) ?? [];
  return service ?? type;
};

test('every process of a browser runs under the filter and can gain no privileges; pages under the one of Chromium too', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.navigate', { url: pages.a }, page);
  const all = processesOf(id).filter(({ pid }) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('chrom'));
  const kinds = new Map(all.map(({ pid }) => [kindOf(pid), seen(pid)]));
  for (const kind of ['browser', 'zygote', 'gpu-process', 'network.mojom.NetworkService', 'renderer'])
    assert.ok(kinds.has(kind), `there is no ${kind} among ${[...kinds.keys()]}`);
  for (const [kind, { noNewPrivileges, seccomp }] of kinds)
    assert.deepEqual([noNewPrivileges, seccomp], [true, FILTERED], kind);
  assert.equal(kinds.get('browser')?.filters, 1);
  assert.ok((kinds.get('renderer')?.filters ?? 0) > 1, "Chromium's own filter holds beside it");
  await client.close();
  await server.release(id);
});
