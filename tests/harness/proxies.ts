// Real proxy programs on loopback with user name and password: HTTP and HTTPS from an npm package, SOCKS5 from a Debian
// package. The proxies resolve a name that nothing else resolves, so a request for that name must have passed through a
// proxy.
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { type PrepareRequestFunctionOpts, type PrepareRequestFunctionResult, Server } from 'proxy-chain';
import { claimFreePort } from './free-port.ts';
import { eventually } from './until.ts';

export const USER = 'someone';
export const PASSWORD = 'pass:word/+ ';

/** A host name that only the proxies resolve, to 127.0.0.1. */
export const HIDDEN_HOST = 'hidden.test';

export interface RunningProxy {
  readonly port: number;
  /** For example `http://127.0.0.1:PORT`. */
  readonly server: string;
  close(): Promise<void>;
}

export interface HttpProxy extends RunningProxy {
  /** The requests so far, oldest first, as `connect name:port` or `http name:port`. */
  readonly requests: string[];
  /**
   * Holds back the responses for these hosts. Each call replaces the list, and releases the responses for hosts that are
   * no longer in it.
   */
  holdBack(hostnames: readonly string[]): void;
  /** Closes the open connections and continues to serve. */
  dropConnections(): void;
}

export async function openHttpProxy(tls?: { cert: Buffer; key: Buffer }): Promise<HttpProxy> {
  const requests: string[] = [];
  const heldHosts = new Set<string>();
  const releaseEmitter = new EventEmitter().setMaxListeners(0);
  const commonOptions = {
    host: '127.0.0.1',
    port: await claimFreePort(),
    prepareRequestFunction: async ({ username, password, hostname, port, isHttp }: PrepareRequestFunctionOpts) => {
      if (username !== USER || password !== PASSWORD) return { requestAuthentication: true };
      requests.push(`${isHttp ? 'http' : 'connect'} ${hostname}:${port}`);
      while (heldHosts.has(hostname)) await once(releaseEmitter, 'some');
      return { dnsLookup: lookup };
    },
  };
  const server = new Server(tls ? { ...commonOptions, serverType: 'https', httpsOptions: tls } : commonOptions);
  await server.listen();
  const close = async (): Promise<void> => server.close(true);
  after(close);
  return {
    port: commonOptions.port,
    server: `${tls ? 'https' : 'http'}://127.0.0.1:${commonOptions.port}`,
    requests,
    holdBack: hostnames => {
      heldHosts.clear();
      for (const hostname of hostnames) heldHosts.add(hostname);
      releaseEmitter.emit('some');
    },
    dropConnections: () => server.closeConnections(),
    close,
  };
}

type LookupCallback = (
  error: Error | null,
  address: string | Array<{ address: string; family: number }>,
  family?: number,
) => void;

/** Supports the two callback forms of `dns.lookup` that are used here. */
const lookup = ((name: string, options: { all?: boolean }, callback: LookupCallback): void => {
  if (name !== HIDDEN_HOST)
    callback(Object.assign(new Error(`the test proxy cannot resolve ${name}`), { code: 'ENOTFOUND' }), '', 4);
  else if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
}) as NonNullable<PrepareRequestFunctionResult['dnsLookup']>;

/**
 * Starts a SOCKS5 proxy. Needs the Debian package microsocks. Runs in its own mount namespace, where /etc/hosts
 * contains the hidden name.
 */
export async function openSocksProxy(): Promise<RunningProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-socks-'));
  const hostsFile = join(folder, 'hosts');
  writeFileSync(hostsFile, `127.0.0.1 localhost ${HIDDEN_HOST}\n`);
  const port = await claimFreePort();
  const userArgs = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const script = 'mount --bind "$0" /etc/hosts && exec microsocks -i 127.0.0.1 -p "$1" -u "$2" -P "$3"';
  const args = [...userArgs, '--mount', '--', 'sh', '-c', script, hostsFile, String(port), USER, PASSWORD];
  const child = spawn('unshare', args, { stdio: 'ignore' });
  const close = async (): Promise<void> => {
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  after(close);
  await eventually('the SOCKS5 proxy to listen', () => isListening(port, child));
  return { port, server: `socks5://127.0.0.1:${port}`, close };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function isListening(port: number, child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`microsocks ended with ${child.exitCode}`);
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
