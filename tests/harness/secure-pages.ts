// A small site over TLS with a given certificate, on loopback: a page, a worker, a WebSocket that returns each message
// in capitals, and a download.
import { once } from 'node:events';
import { createServer } from 'node:https';
import { after } from 'node:test';
import { WebSocketServer } from 'ws';
import type { SignedCertificate } from './authority.ts';

export const SECURE_TITLE = 'Secure';
const SECURE_FILE_TEXT = 'secure,file\n';

const RESPONSES: Readonly<Record<string, readonly [type: string, text: string]>> = {
  '/': ['text/html', `<!doctype html><title>${SECURE_TITLE}</title><a id="get" href="/file">get</a>`],
  '/data': ['text/plain', 'data'],
  '/worker.js': [
    'text/javascript',
    "fetch('/data').then(a => a.text()).then(postMessage, e => postMessage(String(e)))",
  ],
  '/file': ['application/octet-stream', SECURE_FILE_TEXT],
};

/** Opens the site, which runs until the end of the test file, and returns its port. */
export async function openSecurePages(certificate: SignedCertificate): Promise<number> {
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    const [type, text] = RESPONSES[request.url ?? ''] ?? ['text/plain', 'not here'];
    response.writeHead(200, { 'content-type': type }).end(text);
  });
  const webSocketServer = new WebSocketServer({ server, path: '/ws' });
  webSocketServer.on('connection', socket => socket.on('message', data => socket.send(String(data).toUpperCase())));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    for (const socket of webSocketServer.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}
