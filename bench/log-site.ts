// Pages that log messages and send requests, at the rate of a normal page and at an excessive rate.
import { once } from 'node:events';
import { createServer } from 'node:http';

export interface Site {
  readonly url: string;
  readonly pages: readonly string[];
  close(): Promise<void>;
}

const page = (intervalMs: number, work: string): string =>
  `<!doctype html><title>Works</title><script>setInterval(() => { ${work} }, ${intervalMs})</script>`;

const PAGES: Readonly<Record<string, string>> = {
  '/idle': '<!doctype html><title>Idle</title>',
  '/agent': page(500, "console.log('step', Date.now()); fetch('/answer')"),
  '/busy': page(10, "console.log('line', { at: Date.now() }); fetch('/answer')"),
};

/** Opens the site on loopback. The sessions of a server can reach it if BERTH_EGRESS_ALLOW allows this. */
export async function openSite(): Promise<Site> {
  const server = createServer(({ url = '/' }, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGES[url] ?? 'an answer');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    pages: Object.keys(PAGES),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
