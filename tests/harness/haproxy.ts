// HAProxy with the example in deploy/, on loopback. Its files are in a folder of the test, and HAProxy ends with the
// test.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import { CHECKOUT } from './server.ts';
import { eventually } from './until.ts';

export interface HaproxyOptions {
  readonly port: number;
  readonly cert: Buffer;
  readonly key: Buffer;
  /** The addresses that replace the example's `server` line, as `HOST:PORT`. */
  readonly servers: readonly string[];
}

/** Starts HAProxy. Fails if HAProxy refuses the example or warns about it. */
export async function startHaproxy({ port, cert, key, servers }: HaproxyOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-haproxy-'));
  after(() => rmSync(folder, { recursive: true }));
  const pem = join(folder, 'both.pem');
  writeFileSync(pem, Buffer.concat([cert, key]), { mode: 0o600 });
  const replacements = {
    'bind :443 ': `bind 127.0.0.1:${port} `,
    '/etc/ssl/browsers.example.pem': pem,
    '    server one 127.0.0.1:8080\n': servers.map((address, at) => `    server s${at} ${address}\n`).join(''),
  };
  let config = readFileSync(join(CHECKOUT, 'deploy/haproxy.cfg'), 'utf8');
  for (const [original, replacement] of Object.entries(replacements)) {
    if (!config.includes(original)) throw new Error(`deploy/haproxy.cfg does not contain "${original}"`);
    config = config.replace(original, replacement);
  }
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, config);
  const configCheck = spawnSync('haproxy', ['-c', '-q', '-f', file], { encoding: 'utf8' });
  if (configCheck.status !== 0 || /\[(WARNING|ALERT)\]/.test(configCheck.stderr)) throw new Error(configCheck.stderr);
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const errorOutput = text(child.stderr);
  after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await exit;
  });
  await eventually('HAProxy to find a server', async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}: ${await errorOutput}`);
    return (await fetch(`https://127.0.0.1:${port}/healthz`).catch(() => undefined))?.status === 200;
  });
}
