// nginx with an example from deploy/, on loopback. Its files are in a folder of the test, and nginx ends with the test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import { CHECKOUT } from './server.ts';
import { eventually } from './until.ts';

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Starts nginx. The example must contain every string that is replaced. */
export async function startNginx(
  port: number,
  { cert, key }: Certificate,
  replacements: Readonly<Record<string, string>>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-nginx-'));
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
  const allReplacements = {
    'listen 443 ssl;': `listen 127.0.0.1:${port} ssl;`,
    '/etc/ssl/browsers.example/fullchain.pem': join(folder, 'cert.pem'),
    '/etc/ssl/browsers.example/privkey.pem': join(folder, 'key.pem'),
    ...replacements,
  };
  let site = readFileSync(join(CHECKOUT, 'deploy/nginx/berth.conf'), 'utf8');
  for (const [originalText, replacement] of Object.entries(allReplacements)) {
    if (!site.includes(originalText)) throw new Error(`deploy/nginx/berth.conf does not contain "${originalText}"`);
    site = site.replaceAll(originalText, replacement);
  }
  writeFileSync(join(folder, 'site.conf'), site);
  writeFileSync(join(folder, 'nginx.conf'), mainConf(folder));
  const child = spawn('nginx', ['-e', join(folder, 'error.log'), '-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const errorOutput = text(child.stderr);
  after(() => end(child, folder));
  await eventually('nginx to listen', async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}: ${await errorOutput}`);
    return isListening(port);
  });
}

/** The main configuration: one process in the foreground, and nothing outside the folder. */
const mainConf = (folder: string): string => `
daemon off;
master_process off;
pid ${folder}/pid;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/bodies;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  include ${folder}/site.conf;
}
`;

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function end(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
  rmSync(folder, { recursive: true });
}
