// Pages for sessions to visit: an HTTP server on loopback that counts requests. With `settings`, sessions of a server
// under test can reach it by its address and by the names a.test and b.test.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after } from 'node:test';
import { WebSocketServer } from 'ws';

export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void);

export interface Pages {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly url: string;
  /** Like `url`, but with the host name a.test or b.test. */
  readonly a: string;
  readonly b: string;
  /** Settings of a server whose sessions may reach these pages. */
  readonly settings: Readonly<Record<string, string>>;
  /** Adds or replaces a page. A string is HTML. */
  set(path: string, page: Page): void;
  /** The number of requests for the path. */
  hits(path: string): number;
}

export const BIG_FILE_BYTES = 8 * 1024 ** 2;
export const FILE_NAME = 'report.csv';
export const FILE_TEXT = 'name,amount\nberth,1\n';

const STANDARD_PAGES: Readonly<Record<string, Page>> = {
  '/': '<!doctype html><title>Home</title><h1>Home</h1><a id="next" href="/next">next</a>',
  '/next': '<!doctype html><title>Next</title><h1>Next</h1>',
  '/popups':
    '<!doctype html><title>Popups</title><button id="open" onclick="window.open(\'/next\')">open</button><a id="blank" target="_blank" href="/next">blank</a>',
  '/tall': '<!doctype html><title>Tall</title><div style="height:10000px"></div>',
  '/colours':
    '<!doctype html><title>Colours</title><style>body{margin:0}div{width:100px;height:100px;float:left}</style><div style="background:#ff0000"></div><div style="background:#00ff00"></div><div style="background:#0000ff"></div>',
  '/download-page': `<!doctype html><title>Download</title><a id="get" href="/download">get</a>`,
  '/download': (_, response) => {
    response.writeHead(200, {
      'content-type': 'text/csv',
      'content-disposition': `attachment; filename="${FILE_NAME}"`,
    });
    response.end(FILE_TEXT);
  },
  '/big': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.end(Buffer.alloc(BIG_FILE_BYTES, 'x'));
  },
  '/redirect': (_, response) => {
    response.writeHead(302, { location: '/next' });
    response.end();
  },
  '/echo': (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ method: request.method, headers: request.headers }));
  },
  '/socket':
    "<!doctype html><title>Socket</title><script>const s = new WebSocket(`ws://${location.host}/ws`); s.onopen = () => s.send('hello'); s.onmessage = e => { document.title = e.data }</script>",
};

/**
 * Opens pages that are closed at the end of the test or test file. A path that ends in `/*` matches each path below it.
 * A WebSocket at /ws returns each message in capitals.
 */
export async function openPages(pages: Readonly<Record<string, Page>> = {}): Promise<Pages> {
  const allPages = new Map(Object.entries({ ...STANDARD_PAGES, ...pages }));
  const hits = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    hits.set(path, (hits.get(path) ?? 0) + 1);
    const wildcardPath = [...allPages.keys()].find(key => key.endsWith('/*') && path.startsWith(key.slice(0, -1)));
    serve(allPages.get(path) ?? allPages.get(wildcardPath ?? ''), request, response);
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
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    a: `http://a.test:${port}`,
    b: `http://b.test:${port}`,
    settings: {
      BERTH_EGRESS_ALLOW: `127.0.0.1/32:${port}`,
      BERTH_EGRESS_HOSTS: 'a.test=127.0.0.1,b.test=127.0.0.1',
    },
    set: (path, page) => void allPages.set(path, page),
    hits: path => hits.get(path) ?? 0,
  };
}

function serve(page: Page | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (typeof page === 'function') return page(request, response);
  response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(page ?? '<!doctype html><title>Not here</title>');
}
