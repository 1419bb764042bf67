// Runs in its own network namespace, where the forbidden addresses belong to the loopback interface and servers count
// connections to them. Tries every spelling of these addresses through the proxy, with a closed and an open policy, and
// prints the results.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { parseAddress } from '../../server/engines/egress/address.ts';
import { type Egress, openEgress } from '../../server/engines/egress/egress.ts';
import type { EgressLimits } from '../../server/engines/egress/limits.ts';
import { type EgressPolicy, egressPolicy } from '../../server/engines/egress/policy.ts';
import { createResolver } from '../../server/engines/egress/resolve.ts';
import { createThisMachine } from '../../server/engines/egress/this-machine.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { withTimeout } from '../../server/kit/wait.ts';
import { openNameServer, PATIENT_TIMEOUTS, type Question } from '../engines/egress-dns.ts';
import {
  embeddingAddressesOf,
  FORBIDDEN_IPV4,
  FORBIDDEN_IPV6,
  type Spelling,
  spellingsOfIpv4,
  spellingsOfIpv6,
} from './egress-spellings.ts';

/** The result of one request. */
export interface Outcome {
  readonly status: number;
  /** The rule that refused the request, the kind of failure, or the address that responded. */
  readonly said: string;
  /** The number of connections that arrived at any forbidden address. */
  readonly hits: number;
}

export interface Attempt extends Spelling {
  readonly via: Via;
  readonly shut: Outcome;
  readonly opened: Outcome;
}

export interface Report {
  readonly attempts: readonly Attempt[];
  readonly scenes: Readonly<Record<string, unknown>>;
}

interface OpenedEgress {
  readonly egress: Egress;
  readonly proxyPort: number;
  close(): Promise<void>;
}

type Via = 'connect' | 'http' | 'curl connect' | 'curl http';

const PUBLIC_IPV4 = '93.184.216.34';
const PUBLIC_IPV6 = '2606:2800:220:1::9';
const PORT = 80;
const OWN_PORT = 8080;
/** The port of another service in this namespace. */
const OTHER_PORT = 9200;
const LATE_IPV4 = '93.184.218.1';
const CARRIERLESS_IPV4 = '93.184.219.1';
const RESPONSE_TIMEOUT_MS = 30_000;
/** Longer than any likely suspension of the test machine, but shorter than `RESPONSE_TIMEOUT_MS`. */
const LONG_CONNECT_TIMEOUT_MS = 25_000;

const ip = (...args: readonly string[]): void =>
  void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });

function makeAddresses(): void {
  ip('link', 'set', 'lo', 'up');
  const ipv4Addresses = [
    ...FORBIDDEN_IPV4.map(([address]) => address).filter(address => address !== '127.0.0.1'),
    PUBLIC_IPV4,
  ];
  for (const address of ipv4Addresses) ip('addr', 'add', `${address}/32`, 'dev', 'lo');
  const ipv6Addresses = FORBIDDEN_IPV6.map(([address]) => address).filter(address => address !== '::1');
  for (const address of [
    ...ipv6Addresses,
    PUBLIC_IPV6,
    ...FORBIDDEN_IPV4.flatMap(([four]) => embeddingAddressesOf(four)),
  ])
    ip('-6', 'addr', 'add', `${address}/128`, 'dev', 'lo', 'nodad');
}

/** Creates a host that never responds: packets to it go to a veth peer that nothing reads. */
function makeSilentHost(): void {
  ip('link', 'add', 'wire0', 'type', 'veth', 'peer', 'name', 'wire1');
  ip('addr', 'add', '93.184.217.1/24', 'dev', 'wire0');
  for (const end of ['wire0', 'wire1']) ip('link', 'set', end, 'up');
  ip('neigh', 'add', SILENT_ADDRESS, 'lladdr', '02:00:00:00:00:02', 'dev', 'wire0');
}

const SILENT_ADDRESS = '93.184.217.2';

/** Normalizes an address, so that the actual and the intended address can be compared. */
function normalizeAddress(text: string): string {
  const address = parseAddress(text)?.text ?? '';
  return address.includes(':') ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : address;
}

let hits: string[] = [];

async function startCountingServer(port: number): Promise<void> {
  const server = createHttpServer((request, response) => {
    response.end(normalizeAddress(request.socket.localAddress ?? ''));
  });
  server.on('connection', socket => hits.push(`${normalizeAddress(socket.localAddress ?? '')}:${port}`));
  server.listen(port, '::');
  await once(server, 'listening');
}

async function requestRaw(proxyPort: number, via: Via, host: string, port: number): Promise<Outcome> {
  hits = [];
  const socket = connect(proxyPort, '127.0.0.1');
  let text = '';
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const closeEvent = Promise.withResolvers<void>();
  socket
    .setEncoding('utf8')
    .on('error', () => {})
    .on('close', () => closeEvent.resolve());
  socket.on('data', part => {
    text += part;
    if (!text.includes('\r\n\r\n') || !text.startsWith('HTTP/1.1 200 Connection Established')) return;
    text = text.slice(text.indexOf('\r\n\r\n') + 4);
    socket.write(get('/'));
  });
  socket.write(via === 'http' ? get(`http://${host}:${port}/`) : `CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await withTimeout(RESPONSE_TIMEOUT_MS, `an answer about ${host}`, () => closeEvent.promise).finally(() =>
    socket.destroy(),
  );
  return parseOutcome(text);
}

function requestByCurl(proxyPort: number, via: Via, host: string, port: number): Promise<Outcome> {
  hits = [];
  const how = via === 'curl connect' ? ['--proxytunnel'] : [];
  const args = [
    '-q',
    '-si',
    '--globoff',
    '--max-time',
    '25',
    '--noproxy',
    '',
    '--proxy',
    `http://127.0.0.1:${proxyPort}`,
  ];
  return withTimeout(RESPONSE_TIMEOUT_MS, `curl to ask for ${host}`, async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    execFile('curl', [...args, ...how, `http://${host}:${port}/`], (_error, stdout) => resolve(stdout));
    return parseOutcome((await promise).replace(/^HTTP\/1.1 200 Connection Established\r\n\r\n/, ''));
  });
}

function parseOutcome(text: string): Outcome {
  const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1] ?? 0);
  const reason = /^x-berth-(?:refused|failed): (\S+)/m.exec(text)?.[1];
  return { status, said: reason ?? text.slice(text.indexOf('\r\n\r\n') + 4).trim(), hits: hits.length };
}

const addressesByName: Record<string, string> = {};

function collectSpellings(): Spelling[] {
  const ipv4Spellings = FORBIDDEN_IPV4.flatMap(([address, rule], index) => {
    addressesByName[`static-${index}.test`] = address;
    const ownSpellings = [
      ...spellingsOfIpv4(address),
      `static-${index}.test`,
      `STATIC-${index}.test.`,
      `dns-${index}.test`,
    ];
    const carrierSpellings = embeddingAddressesOf(address).map(carrier => ({
      host: `[${carrier}]`,
      reachedAddress: normalizeAddress(carrier),
      rule,
    }));
    return [...ownSpellings.map(host => ({ host, reachedAddress: address, rule })), ...carrierSpellings];
  });
  const ipv6Spellings = FORBIDDEN_IPV6.flatMap(([address, rule], index) => {
    addressesByName[`static6-${index}.test`] = address;
    const hosts = [...spellingsOfIpv6(address), `static6-${index}.test`, `dns6-${index}.test`];
    return hosts.map(host => ({ host, reachedAddress: address, rule }));
  });
  const zeroSpellings = ['0', '0.0.0.0', '0x0', '00', '[::ffff:0.0.0.0]'].map(host => ({
    host,
    reachedAddress: '127.0.0.1',
    rule: 'unspecified',
  }));
  const localSpellings = ['localhost', 'LOCALHOST.', 'x.localhost', 'x.y.localhost'].map(host => ({
    host,
    reachedAddress: '127.0.0.1',
    rule: 'loopback',
  }));
  return [
    ...ipv4Spellings,
    ...ipv6Spellings,
    ...zeroSpellings,
    { host: '[::]', reachedAddress: '::1', rule: 'unspecified' },
    ...localSpellings,
  ];
}

/**
 * Answers like a name server with fixed names, a name that changes after its first response, and names with both public
 * and private addresses.
 */
function answer({ name, type, time }: Question) {
  const ipv4Answer = (...addresses: string[]) => ({ addresses: type === 'A' ? addresses : [] });
  const [, family, index] = /^dns(6?)-(\d+)\.test$/.exec(name) ?? [];
  if (index !== undefined) {
    const address = (family === '6' ? FORBIDDEN_IPV6 : FORBIDDEN_IPV4)[Number(index)]?.[0] ?? '';
    return { addresses: (type === 'AAAA') === (family === '6') ? [address] : [] };
  }
  if (name === 'turning.test') return ipv4Answer(time === 1 ? PUBLIC_IPV4 : '10.9.9.9');
  if (name === 'mixed.test') return ipv4Answer(PUBLIC_IPV4, '10.9.9.9');
  if (name === 'mixed6.test') return { addresses: type === 'A' ? [PUBLIC_IPV4] : ['fd00::9'] };
  if (name === 'mapped.test') return { addresses: type === 'A' ? [] : ['::ffff:10.9.9.9'] };
  if (name === 'public.test') return { addresses: type === 'A' ? [PUBLIC_IPV4] : [PUBLIC_IPV6] };
  if (name === 'slow.test') return ipv4Answer(SILENT_ADDRESS, PUBLIC_IPV4);
  if (name === 'silent.test') return ipv4Answer(SILENT_ADDRESS);
  return { addresses: [] };
}

const allRanges = (port?: number): { address: string; prefix: number; family: 4 | 6; port?: number }[] => [
  { address: '0.0.0.0', prefix: 0, family: 4, ...(port ? { port } : {}) },
  { address: '::', prefix: 0, family: 6, ...(port ? { port } : {}) },
];

const realMachine = createThisMachine({ listeners: [{ host: '0.0.0.0', port: OWN_PORT }], clock: systemClock });
/**
 * In the namespace, all outside addresses belong to interfaces of this machine. With this override, the policy treats
 * none of them as addresses of the machine itself.
 */
const machine = { ...realMachine, has: () => false };
const defaultPolicy: EgressPolicy = egressPolicy({ allow: [], machine });
const allowAllPolicy: EgressPolicy = egressPolicy({ allow: allRanges(), machine });

async function main(): Promise<Report> {
  makeAddresses();
  makeSilentHost();
  await Promise.all([startCountingServer(PORT), startCountingServer(OWN_PORT), startCountingServer(OTHER_PORT)]);
  const spellings = collectSpellings();
  await using server = await openNameServer(answer);
  const resolve = createResolver({
    hosts: new Map(Object.entries(addressesByName)),
    clock: systemClock,
    servers: [server.address],
    timeouts: PATIENT_TIMEOUTS,
  });
  const open = async (limits: Partial<EgressLimits>): Promise<OpenedEgress> => {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const egress = openEgress({
      server: listener,
      policy: defaultPolicy,
      resolve,
      log: silentLog,
      clock: systemClock,
      limits,
    });
    const close = async (): Promise<void> => {
      await egress.close();
      listener.close();
    };
    return { egress, proxyPort: (listener.address() as AddressInfo).port, close };
  };
  // Long timeouts, because a suspended machine must not look like a silent host. Only the tests of these timeouts use
  // short ones.
  const longTimeoutEgress = await open({ connectMs: LONG_CONNECT_TIMEOUT_MS, nextAddressMs: LONG_CONNECT_TIMEOUT_MS });
  const longConnectEgress = await open({ connectMs: LONG_CONNECT_TIMEOUT_MS });
  const shortConnectEgress = await open({ connectMs: 600 });
  const { egress, proxyPort } = longTimeoutEgress;
  const attempts: Attempt[] = [];
  for (const spelling of spellings)
    for (const via of ['connect', 'http'] as const) attempts.push(await attack(egress, proxyPort, spelling, via));
  const metadataSpellings = spellings.filter(
    ({ reachedAddress, host }) => reachedAddress === '169.254.169.254' && !host.includes('%'),
  );
  for (const spelling of metadataSpellings)
    for (const via of ['curl connect', 'curl http'] as const)
      attempts.push(await attack(egress, proxyPort, spelling, via));
  const scenes = await runScenes(longTimeoutEgress, longConnectEgress, shortConnectEgress, server.queryCount);
  for (const each of [longTimeoutEgress, longConnectEgress, shortConnectEgress]) await each.close();
  return { attempts, scenes };
}

async function attack(egress: Egress, proxyPort: number, spelling: Spelling, via: Via): Promise<Attempt> {
  const ask = via.startsWith('curl') ? requestByCurl : requestRaw;
  egress.replacePolicy(defaultPolicy);
  const shutOutcome = await ask(proxyPort, via, spelling.host, PORT);
  egress.replacePolicy(allowAllPolicy);
  return { ...spelling, via, shut: shutOutcome, opened: await ask(proxyPort, via, spelling.host, PORT) };
}

async function runScenes(
  longTimeoutEgress: OpenedEgress,
  longConnectEgress: OpenedEgress,
  shortConnectEgress: OpenedEgress,
  queryCount: (name: string) => number,
): Promise<Report['scenes']> {
  const scenes: Record<string, unknown> = {};
  const { egress, proxyPort } = longTimeoutEgress;
  const runScene = async (
    name: string,
    policy: EgressPolicy,
    host: string,
    port = PORT,
    { egress, proxyPort } = longTimeoutEgress,
  ): Promise<void> => {
    egress.replacePolicy(policy);
    for (const via of ['connect', 'http'] as const)
      scenes[`${name} by ${via}`] = await requestRaw(proxyPort, via, host, port);
  };
  egress.replacePolicy(defaultPolicy);
  scenes['turning, first'] = {
    ...(await requestRaw(proxyPort, 'connect', 'turning.test', PORT)),
    asked: queryCount('turning.test'),
  };
  scenes['turning, second'] = {
    ...(await requestRaw(proxyPort, 'http', 'turning.test', PORT)),
    asked: queryCount('turning.test'),
  };
  scenes['turning, third'] = {
    ...(await requestRaw(proxyPort, 'connect', 'turning.test', PORT)),
    asked: queryCount('turning.test'),
  };
  await runScene('public', defaultPolicy, 'public.test');
  for (const name of ['mixed.test', 'mixed6.test', 'mapped.test']) {
    await runScene(`${name} shut`, defaultPolicy, name);
    await runScene(`${name} opened`, allowAllPolicy, name);
  }
  for (const host of [
    '127.0.0.1',
    '[::1]',
    '0.0.0.0',
    '127.5.5.5',
    '10.9.9.9',
    PUBLIC_IPV4,
    '[64:ff9b::a09:909]',
    'localhost',
  ]) {
    await runScene(`own ${host} shut`, defaultPolicy, host, OWN_PORT);
    await runScene(`own ${host} opened by range`, allowAllPolicy, host, OWN_PORT);
  }
  const exactPolicy = egressPolicy({
    allow: [{ address: '127.0.0.1', prefix: 32, family: 4, port: OWN_PORT }],
    machine,
  });
  await runScene('own opened exactly', exactPolicy, '127.0.0.1', OWN_PORT);
  await runMachineScenes(runScene);
  await runScene('slow', defaultPolicy, 'slow.test', PORT, longConnectEgress);
  await runScene('silent', defaultPolicy, 'silent.test', PORT, shortConnectEgress);
  return scenes;
}

/** Tries to reach addresses of this machine, most of which are public, with policies that use its real interfaces. */
async function runMachineScenes(
  runScene: (name: string, policy: EgressPolicy, host: string, port: number) => Promise<void>,
) {
  const policyAllowing = (allow: Parameters<typeof egressPolicy>[0]['allow']): EgressPolicy =>
    egressPolicy({ allow, machine: realMachine });
  for (const host of [
    PUBLIC_IPV4,
    `[${PUBLIC_IPV6}]`,
    `[::ffff:${PUBLIC_IPV4}]`,
    '[64:ff9b::5db8:d822]',
    'public.test',
  ]) {
    await runScene(`machine ${host} shut`, policyAllowing([]), host, OTHER_PORT);
    await runScene(`machine ${host} opened by range`, policyAllowing(allRanges()), host, OTHER_PORT);
  }
  await runScene('machine loopback opened by range', policyAllowing(allRanges()), '127.0.0.1', OTHER_PORT);
  const exactRange = [{ address: PUBLIC_IPV4, prefix: 32, family: 4, port: OTHER_PORT }] as const;
  await runScene('machine opened exactly', policyAllowing(exactRange), PUBLIC_IPV4, OTHER_PORT);
  await runScene(
    'machine opened at another port',
    policyAllowing([{ ...exactRange[0], port: PORT }]),
    PUBLIC_IPV4,
    OTHER_PORT,
  );
  const policy = policyAllowing([]);
  ip('addr', 'add', `${LATE_IPV4}/32`, 'dev', 'lo');
  await runScene('machine, an address that has just come', policy, LATE_IPV4, OTHER_PORT);
  ip('addr', 'del', `${LATE_IPV4}/32`, 'dev', 'lo');
  // An interface without a carrier: lists of running interfaces omit it, but the kernel still answers for its address.
  ip('link', 'add', 'dead0', 'type', 'veth', 'peer', 'name', 'dead1');
  ip('addr', 'add', `${CARRIERLESS_IPV4}/24`, 'dev', 'dead0');
  ip('link', 'set', 'dead0', 'up');
  await runScene('machine, an interface without a carrier', policy, CARRIERLESS_IPV4, OTHER_PORT);
}

const report = await main();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
