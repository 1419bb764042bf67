// Runs in its own network, mount and process namespaces, with a Chromium that has no jail. Makes the attempts that
// never leave a jail, each with its own host and port, and prints the names of those that arrived.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findChromium } from '../../server/engines/slots/chromium.ts';
import { type Answer, openNameServer, type Question } from '../engines/egress-dns.ts';
import { CdpClient } from '../harness/cdp.ts';
import { eventually } from '../harness/until.ts';
import { STAYING_ROUTES } from './exfiltration-routes.ts';

/** The address of a veth interface in the namespace. Nothing is connected to its peer. */
const ADDRESS = '93.184.216.34';
const ARRIVAL_TIMEOUT_MS = 4_000;
const TRIES_MAX = 20;
const FIRST_PORT = 20_000;
const HOME_PORT = 8000;

const folder = mkdtempSync(join(tmpdir(), 'berth-outside-'));
const arrivedNames = new Set<string>();
const names = Object.keys(STAYING_ROUTES);
const hostOf = (name: string): string => `x${names.indexOf(name)}.b.test`;
const portOf = (name: string): number => FIRST_PORT + names.indexOf(name);

function makeNetwork(): void {
  const ip = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: 'ignore' });
  ip('link', 'set', 'lo', 'up');
  ip('link', 'add', 'wire0', 'type', 'veth', 'peer', 'name', 'wire1');
  ip('addr', 'add', `${ADDRESS}/24`, 'dev', 'wire0');
  for (const end of ['wire0', 'wire1']) ip('link', 'set', end, 'up');
  ip('route', 'add', 'default', 'via', '93.184.216.1', 'dev', 'wire0');
  const resolvFile = join(folder, 'resolv.conf');
  writeFileSync(resolvFile, 'nameserver 127.0.0.1\n');
  execFileSync('mount', ['--bind', resolvFile, '/etc/resolv.conf']);
}

async function startReceivers(): Promise<void> {
  const answer = ({ name, type }: Question): Answer => {
    if (name === hostOf('a prefetch of a name')) arrivedNames.add('a prefetch of a name');
    return { addresses: type === 'A' ? [ADDRESS] : [] };
  };
  await openNameServer(answer, 53);
  for (const name of names) {
    if (name === 'a prefetch of a name') continue;
    const tcp = createServer(socket => {
      arrivedNames.add(name);
      socket.on('error', () => {}).destroy();
    }).listen(portOf(name), ADDRESS);
    const udp = createSocket('udp4', () => void arrivedNames.add(name)).bind(portOf(name), ADDRESS);
    await Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
  }
  const home = createHttpServer((_, response) => response.end('<!doctype html><title>Home</title>'));
  await once(home.listen(HOME_PORT, '127.0.0.1'), 'listening');
}

async function startChromium(
  name: string,
  ...more: readonly string[]
): Promise<{ child: ChildProcess; client: CdpClient }> {
  const chromiumArgs = [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--remote-debugging-port=0',
    '--no-first-run',
  ];
  const profile = `--user-data-dir=${join(folder, name)}`;
  const child = spawn(findChromium() ?? 'chromium', [...chromiumArgs, ...more, profile, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: '/usr/bin:/bin', HOME: folder },
  });
  const devtoolsUrl = Promise.withResolvers<string>();
  createInterface(child.stderr).on('line', line => {
    const url = /^DevTools listening on (\S+)$/.exec(line)?.[1];
    if (url) devtoolsUrl.resolve(url);
  });
  return { child, client: await CdpClient.connect(await devtoolsUrl.promise) };
}

async function attempt(client: CdpClient, name: string): Promise<void> {
  const home = `http://127.0.0.1:${HOME_PORT}`;
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  const page = String(sessionId);
  await client.send('Page.navigate', { url: home }, page);
  await client.waitForValue('the page to be there', 'document.title', page, title => title === 'Home');
  await STAYING_ROUTES[name]?.({
    send: (method, params) => client.send(method, params, page),
    sendBrowser: (method, params) => client.send(method, params),
    on: () => {},
    home,
    host: hostOf(name),
    port: portOf(name),
  });
}

const PROXIED_ATTEMPT = 'a context without the proxy';

makeNetwork();
await startReceivers();
const plainChromium = await startChromium('plain');
for (const name of names) if (name !== PROXIED_ATTEMPT) await attempt(plainChromium.client, name);
// No proxy is listening on this port, so requests that arrive have bypassed it.
const proxiedChromium = await startChromium(
  'proxied',
  '--proxy-server=http://127.0.0.1:9',
  '--proxy-bypass-list=127.0.0.1',
);
await attempt(proxiedChromium.client, PROXIED_ATTEMPT);
// A busy browser may ignore a resource hint such as `preconnect`, so attempts that did not arrive are repeated.
for (let count = 0; count < TRIES_MAX && arrivedNames.size < names.length; count++) {
  await eventually(
    'all to arrive',
    () => arrivedNames.size,
    size => size === names.length,
    ARRIVAL_TIMEOUT_MS,
  ).catch(() => {});
  for (const name of names)
    if (!arrivedNames.has(name))
      await attempt(name === PROXIED_ATTEMPT ? proxiedChromium.client : plainChromium.client, name);
}
for (const { child } of [plainChromium, proxiedChromium]) {
  const exitEvent = once(child, 'exit');
  child.kill('SIGKILL');
  await exitEvent;
}
rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
process.stdout.write(JSON.stringify([...arrivedNames].sort()), () => process.exit());
