// Tries each attack that a client of a browser can make, on one form of isolation. Uses the FIFOs of the box directly
// as a DevTools pipe, without the gateway and the egress proxy. Prints the results as JSON for jail.test.ts. Must run
// in its own network namespace, to which `NETWORK_SCRIPT` has added the foreign addresses.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type CdpObject, CdpPipe } from '../../server/engines/slots/cdp-pipe.ts';
import type { Box, Form } from '../../server/engines/slots/slots.ts';
import { isObject } from '../../server/kit/json.ts';
import { pollUntil, WaitExpired, withTimeout } from '../../server/kit/wait.ts';
import {
  chromium,
  makeDataDir,
  newSession,
  openTestSlots,
  removeDataDir,
  START_TIMEOUT_MS,
  startOptions,
} from '../engines/slots-lab.ts';

export interface Outcome {
  readonly succeeded: boolean;
  /** The text or response that the attacker got, as evidence. */
  readonly seen: string;
}

export const FOREIGN_ADDRESSES = { metadata: '169.254.169.254', private: '10.20.30.40' } as const;

/** A script that adds the foreign addresses to the current network namespace and then runs a command in it. */
export const NETWORK_SCRIPT = `set -e
  ip link set lo up
  ip link add foreign0 type dummy 2>/dev/null || { ip link add foreign0 type veth peer name foreign1; ip link set foreign1 up; }
  ip addr add ${FOREIGN_ADDRESSES.metadata}/32 dev foreign0
  ip addr add ${FOREIGN_ADDRESSES.private}/24 dev foreign0
  ip link set foreign0 up
  ip route add default dev foreign0
  exec "$@"`;

const OWN_INTERFACES = ['lo', 'foreign0', 'foreign1'];
const SECRET = 'the secret of this machine';
const NAVIGATION_TIMEOUT_MS = 20_000;
/**
 * Whether a jail is attacked. Without a jail the packets arrive, but may be late. In a jail they never arrive, so the
 * waits are shorter.
 */
const isJailed = process.argv[2] !== 'process';
const DATAGRAM_TIMEOUT_MS = isJailed ? 4_000 : 30_000;
const GATHER_TIMEOUT_MS = isJailed ? 3_000 : 20_000;
const PAGE_TEXT_CHARS_MAX = 400;
/** An expression for the text of the page, which is empty until the page has loaded. */
const PAGE_TEXT_EXPRESSION =
  "document.readyState === 'complete' && location.href !== 'about:blank' ? document.body.innerText : ''";

class Attacker {
  readonly #pipe: CdpPipe;
  readonly #events: Array<{ method: string; params: CdpObject }> = [];

  constructor(box: Box) {
    this.#pipe = new CdpPipe(box.fifoIn, box.fifoOut, (method, params) => void this.#events.push({ method, params }));
  }

  call(method: string, params: CdpObject = {}, channel?: string): Promise<CdpObject> {
    return this.#pipe.call(method, params, channel);
  }

  eventParams(method: string): readonly CdpObject[] {
    return this.#events.filter(event => event.method === method).map(({ params }) => params);
  }

  /** Opens a page in the default context, or with `direct` in a context that bypasses the proxy. */
  async openPage({ direct } = { direct: false }): Promise<string> {
    const directProxy = { proxyServer: 'direct://', proxyBypassList: '*' };
    const context = direct ? await this.call('Target.createBrowserContext', directProxy) : {};
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank', ...context });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    return String(sessionId);
  }

  /** Returns the text of the page, or the error. */
  async read(url: string, channel: string): Promise<string> {
    const { errorText } = await this.call('Page.navigate', { url }, channel);
    if (typeof errorText === 'string') return errorText;
    const look = async () => String(await this.evaluate(PAGE_TEXT_EXPRESSION, channel)) || undefined;
    const text = await pollUntil(NAVIGATION_TIMEOUT_MS, `the text of ${url}`, look).catch(String);
    return text.slice(0, PAGE_TEXT_CHARS_MAX);
  }

  async evaluate(expression: string, channel: string): Promise<unknown> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', options, channel);
    if (exceptionDetails) return `exception: ${JSON.stringify(exceptionDetails).slice(0, PAGE_TEXT_CHARS_MAX)}`;
    return isObject(result) ? result.value : undefined;
  }

  close(): void {
    this.#pipe.close();
  }
}

interface Scene {
  readonly attacker: Attacker;
  readonly page: string;
  readonly other: Box;
  /** A folder of this machine that everyone may write to, so that only a jail prevents access. */
  readonly openFolder: string;
  readonly hits: () => readonly string[];
  readonly port: number;
  readonly datagrams: () => number;
  readonly stunPort: number;
}

type Attack = (scene: Scene) => Promise<Outcome>;

const readAttack =
  (url: (scene: Scene) => string, proof: RegExp): Attack =>
  async scene => {
    const seen = await scene.attacker.read(url(scene), scene.page);
    return { succeeded: proof.test(seen), seen };
  };

/** Succeeds if the server counts a hit. What the browser reports is ignored. */
const reachAttack =
  (host: string): Attack =>
  async ({ attacker, port, hits }) => {
    const hitsBefore = hits().length;
    const page = await attacker.openPage({ direct: true });
    const navigation = attacker.read(`http://${host}:${port}/`, page);
    const seen = await withTimeout(NAVIGATION_TIMEOUT_MS, host, () => navigation).catch(error => String(error));
    return { succeeded: hits().length > hitsBefore, seen };
  };

const candidateAttack =
  (direct: boolean): Attack =>
  async ({ attacker }) => {
    const foundCandidates = await attacker.evaluate(GATHER_SCRIPT, await attacker.openPage({ direct }));
    const leakedCandidates = Array.isArray(foundCandidates)
      ? foundCandidates.filter(one => !isJailed || !COMMON_CANDIDATE.test(String(one)))
      : [];
    return { succeeded: leakedCandidates.length > 0, seen: JSON.stringify(foundCandidates) };
  };

/** ICE candidates that are the same in every jail: the address that each box has, and mDNS names for it. */
const COMMON_CANDIDATE = / 192\.0\.2\.1 | [0-9a-f-]{36}\.local /;

const GATHER_SCRIPT = `new Promise(done => {
  const found = [], peer = new RTCPeerConnection();
  peer.onicecandidate = ({ candidate }) => candidate?.candidate ? found.push(candidate.candidate) : done(found);
  peer.createDataChannel('x');
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
  setTimeout(() => done(found), ${GATHER_TIMEOUT_MS});
})`;

const stunScript = (port: number): string => `
  globalThis.peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${FOREIGN_ADDRESSES.private}:${port}' }] });
  peer.createDataChannel('x');
  peer.createOffer().then(offer => peer.setLocalDescription(offer))`;

export const ATTACKS = {
  'read /etc/passwd': readAttack(() => 'file:///etc/passwd', /root:/),
  'list the root of the machine': readAttack(() => 'file:///', /home/),
  'list /sys': readAttack(() => 'file:///sys/', /kernel/),
  'read a file of the server': readAttack(({ openFolder }) => `file://${openFolder}/secret.txt`, /secret of this/),
  "read another session's folder": readAttack(({ other }) => `file://${other.folder}/secret.txt`, /secret of this/),
  "read another session's folder by the path of its box": readAttack(
    () => 'file:///session/secret.txt',
    /secret of this/,
  ),
  'list the /proc folder of the server': readAttack(() => `file:///proc/${process.pid}/`, /fdinfo/),
  'attach a file of the machine to a page': async ({ attacker, page, openFolder }) => {
    await attacker.call('Page.navigate', { url: 'about:blank' }, page);
    await attacker.evaluate("document.body.innerHTML = '<input type=file>'", page);
    const { root } = await attacker.call('DOM.getDocument', {}, page);
    const nodeId = isObject(root) ? root.nodeId : undefined;
    const input = await attacker.call('DOM.querySelector', { nodeId, selector: 'input' }, page);
    const files = [join(openFolder, 'secret.txt')];
    await attacker.call('DOM.setFileInputFiles', { ...input, files }, page);
    const seen = await attacker.evaluate("document.querySelector('input').files[0].text().catch(String)", page);
    return { succeeded: seen === SECRET, seen: String(seen) };
  },
  'download a file to a folder outside its box': async ({ attacker, page, openFolder }) => {
    const downloadPath = join(openFolder, 'downloads');
    await attacker.call('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath, eventsEnabled: true });
    await attacker.call('Page.navigate', { url: 'about:blank' }, page);
    const link =
      "Object.assign(document.createElement('a'), { href: 'data:application/octet-stream,x', download: 'x.bin' })";
    await attacker.evaluate(`{ const a = ${link}; document.body.append(a); a.click(); }`, page);
    const readDownloadState = () =>
      attacker
        .eventParams('Browser.downloadProgress')
        .map(({ state }) => state)
        .find(state => state !== 'inProgress');
    const seen = await pollUntil(NAVIGATION_TIMEOUT_MS, 'the download', readDownloadState).catch(String);
    return { succeeded: readdirSync(downloadPath).length > 0, seen: String(seen) };
  },
  'load an extension from another session': async ({ attacker, other }) => {
    const pendingLoad = attacker.call('Extensions.loadUnpacked', { path: join(other.folder, 'extension') });
    const seen = await pendingLoad.then(({ id }) => `loaded ${id}`, String);
    return { succeeded: seen.startsWith('loaded'), seen };
  },
  'reach the control plane on loopback by bypassing the proxy': reachAttack('127.0.0.1'),
  'reach the cloud metadata address by bypassing the proxy': reachAttack(FOREIGN_ADDRESSES.metadata),
  'reach a private address by bypassing the proxy': reachAttack(FOREIGN_ADDRESSES.private),
  'discover IP addresses through WebRTC': candidateAttack(false),
  'discover IP addresses through WebRTC in a context that bypasses the proxy': candidateAttack(true),
  'send a datagram that bypasses the proxy': async ({ attacker, datagrams, stunPort }) => {
    await attacker.evaluate(stunScript(stunPort), await attacker.openPage({ direct: true }));
    const pendingDatagram = pollUntil(DATAGRAM_TIMEOUT_MS, 'a datagram', () => datagrams() || undefined);
    const seen = await pendingDatagram.then(count => `${count} datagrams`, String);
    return { succeeded: datagrams() > 0, seen };
  },
} satisfies Record<string, Attack>;

// ---- setup ----------------------------------------------------------------------------------------------------------

if (process.argv[1] === import.meta.filename) {
  assertOwnNetwork();
  const outcomes = await attackAll(process.argv[2] as Form);
  process.stdout.write(`${JSON.stringify(outcomes)}\n`);
  process.exit(0);
}

function assertOwnNetwork(): void {
  const names = Object.keys(networkInterfaces());
  if (!names.includes('foreign0') || names.some(name => !OWN_INTERFACES.includes(name)))
    throw new Error(
      `the attacks must run in their own network namespace, but this one has the interfaces ${names}; run jail.test.ts`,
    );
}

async function attackAll(form: Form): Promise<Record<string, Outcome>> {
  const dataDir = await makeDataDir();
  const slots = await openTestSlots(form, dataDir);
  try {
    const startBox = () => slots.start(startOptions(newSession(), chromium), AbortSignal.timeout(START_TIMEOUT_MS));
    const [box, otherBox] = await Promise.all([startBox(), startBox()]);
    box.egress.on('connection', (socket: Socket) => void socket.destroy());
    await plant(dataDir, otherBox);
    return await attackEach(box, otherBox, dataDir);
  } finally {
    await slots.close();
    await removeDataDir(dataDir);
  }
}

/** Plants files that everyone may read and write, so that file permissions cannot hide a missing jail. */
async function plant(dataDir: string, otherBox: Box): Promise<void> {
  const openFolder = join(dataDir, 'open');
  for (const folder of [join(openFolder, 'downloads'), join(otherBox.folder, 'extension')])
    await mkdir(folder, { recursive: true });
  await writeFile(join(openFolder, 'secret.txt'), SECRET);
  await writeFile(join(otherBox.folder, 'secret.txt'), SECRET);
  const manifest = { manifest_version: 3, name: 'planted', version: '1' };
  await writeFile(join(otherBox.folder, 'extension/manifest.json'), JSON.stringify(manifest));
  for (const folder of [dataDir, openFolder, join(openFolder, 'downloads'), otherBox.folder])
    await chmod(folder, 0o777);
  if (!existsSync(join(openFolder, 'secret.txt'))) throw new Error('the planted file secret.txt does not exist');
}

async function attackEach(box: Box, other: Box, dataDir: string): Promise<Record<string, Outcome>> {
  const hits: string[] = [];
  const http = createServer((request, response) => {
    hits.push(String(request.headers.host));
    response.end('control plane');
  });
  http.listen(0, '0.0.0.0');
  await once(http, 'listening');
  let datagramCount = 0;
  const udp = createSocket('udp4').on('message', () => void datagramCount++);
  udp.bind(0, '0.0.0.0');
  await once(udp, 'listening');
  const attacker = new Attacker(box);
  const page = await attacker.openPage();
  const address = http.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const scene = {
    ...{ attacker, page, other, openFolder: join(dataDir, 'open'), hits: () => hits, port },
    ...{ datagrams: () => datagramCount, stunPort: udp.address().port },
  };
  const outcomes: Record<string, Outcome> = {};
  for (const [name, attack] of Object.entries(ATTACKS))
    outcomes[name] = await attack(scene).catch(error => ({
      succeeded: false,
      seen: error instanceof WaitExpired ? `NO ANSWER: ${error.message}` : String(error),
    }));
  attacker.close();
  http.close();
  udp.close();
  return outcomes;
}
