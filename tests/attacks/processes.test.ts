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
import { eventually } from '../harness/until.ts';

/** A slice of the recording is over by then. */
const RECORDED_MS = 3_000;
const SEEN_WITHIN_MS = 60_000;

const pages = await openPages({
  '/moving': `<!doctype html><title>Moving</title><p>0</p><script>
    let n = 0; setInterval(() => { document.querySelector('p').textContent = ++n; }, 200);</script>`,
});
const server = await startServer({ pages });

interface Seen {
  readonly pid: number;
  readonly uid: number;
  readonly noNewPrivileges: boolean;
  readonly capabilities: string;
  readonly network: string;
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
    capabilities: fieldOf(status, 'CapEff'),
    network: networkOf(pid),
    root: readdirSync(`/proc/${pid}/root/`),
  };
}

function encoder(): Seen | undefined {
  const [pid] = encodersOf(server.pid);
  return pid === undefined ? undefined : held(pid);
}

/** It may end in the middle of being looked at. */
function held(pid: number): Seen | undefined {
  try {
    process.kill(pid, 'SIGSTOP');
    const found = seen(pid);
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
  assert.equal(ffmpeg?.noNewPrivileges, true);
  assert.match(ffmpeg?.capabilities ?? '', /^0+$/);
  assert.notEqual(ffmpeg?.network, networkOf('self'));
  assert.deepEqual(
    ffmpeg?.root.filter(name => !['usr', 'lib', 'lib64', 'etc'].includes(name)),
    [],
  );
});
