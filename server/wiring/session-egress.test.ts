// The egress proxy of a warm browser, which has no session yet, and the errors for unreadable certificate files.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../config.ts';
import { OutboundEndpoints } from '../engines/egress/departures.ts';
import { egressPolicy } from '../engines/egress/policy.ts';
import { createThisMachine } from '../engines/egress/this-machine.ts';
import type { Box } from '../engines/slots/slots.ts';
import { systemClock } from '../kit/clock.ts';
import { BadConfig } from '../kit/environment.ts';
import { silentLog } from '../kit/log.ts';
import { openSessionEgress } from './session-egress.ts';

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Returns the status code of the response from the proxy on this port. */
async function statusOf(proxyPort: number, method: string, path: string): Promise<number | undefined> {
  const proxyRequest = request({ host: '127.0.0.1', port: proxyPort, method, path, agent: false });
  proxyRequest.end();
  const [reply, socket] = await Promise.race([once(proxyRequest, 'response'), once(proxyRequest, 'connect')]);
  reply.resume();
  socket?.destroy();
  return reply.statusCode;
}

test('a warm browser cannot reach any address, even one that the operator allows, until the network is opened for a session', async t => {
  let hits = 0;
  const outsideServer = createServer((_, response) => {
    hits += 1;
    response.end('outside');
  });
  const port = await listen(t, outsideServer);
  const box = createNetServer();
  const proxyPort = await listen(t, box);
  const config = readConfig({ BERTH_EGRESS_ALLOW: `127.0.0.1/32:${port}` });
  const runtime = { clock: systemClock, log: silentLog };
  const { openEgress } = openSessionEgress(runtime, config, new OutboundEndpoints(), { serve: () => {} });
  const egress = openEgress({ egress: box, session: 'warm' } as Box);
  t.after(() => egress.close());
  const refusedRequests = [
    ['GET', `http://127.0.0.1:${port}/`],
    ['CONNECT', `127.0.0.1:${port}`],
    ['CONNECT', 'localhost:80'],
  ] as const;
  for (const [method, path] of refusedRequests)
    assert.equal(await statusOf(proxyPort, method, path), 403, `${method} ${path}`);
  assert.deepEqual([hits, egress.counters().connections], [0, 0]);
  assert.deepEqual(egress.counters().refusals, { no_session: refusedRequests.length });
  egress.open(
    egressPolicy({ allow: config.egressAllow, machine: createThisMachine({ listeners: [], clock: systemClock }) }),
    {},
  );
  assert.equal(await statusOf(proxyPort, 'GET', `http://127.0.0.1:${port}/`), 200);
  assert.equal(hits, 1);
});

test('the error for a certificate file or key file that cannot be read names the setting', () => {
  const readableFile = import.meta.filename;
  for (const [setting, files] of [
    ['BERTH_TLS_CERT', { BERTH_TLS_CERT: '/no/such/cert.pem', BERTH_TLS_KEY: readableFile }],
    ['BERTH_TLS_KEY', { BERTH_TLS_CERT: readableFile, BERTH_TLS_KEY: '/no/such/key.pem' }],
  ] as const) {
    const config = readConfig({ BERTH_PUBLIC_URL: 'https://berth.test', ...files });
    const runtime = { clock: systemClock, log: silentLog };
    assert.throws(
      () => openSessionEgress(runtime, config, new OutboundEndpoints(), { serve: () => {} }),
      error => error instanceof BadConfig && error.message.startsWith(`${setting} is`),
    );
  }
});
