// The HAProxy example from docs/guides/systemd.md, in front of one server that responds and one that does not respond.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { chromium } from 'playwright-core';
import { claimFreePort } from '../harness/free-port.ts';
import { startHaproxy } from '../harness/haproxy.ts';
import { openPages } from '../harness/pages.ts';
import { createSelfSignedCert } from '../harness/self-signed.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';

const certificate = createSelfSignedCert('127.0.0.1');
setDefaultCACertificates([...getCACertificates('default'), certificate.cert.toString()]);
const port = await claimFreePort();
const url = `https://127.0.0.1:${port}`;
const pages = await openPages({ '/': '<!doctype html><title>Through HAProxy</title>' });
const server = await startServer({ pages, env: { BERTH_PUBLIC_URL: url, BERTH_TRUSTED_PROXIES: '127.0.0.1' } });
const deadAddress = `127.0.0.1:${await claimFreePort()}`;
await startHaproxy({ port, ...certificate, servers: [deadAddress, new URL(server.url).host] });

const agentHeaders = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
const post = async <Body>(path: string, body: object): Promise<Body> => {
  const response = await fetch(url + path, { method: 'POST', headers: agentHeaders, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as Body;
};

test('a session can be created, driven and released through the proxy while one backend server does not respond', async () => {
  const session = await post<CreatedSession>('/v1/browsers/sessions', { keepAlive: true });
  assert.ok(session.connectUrl.startsWith(`wss://127.0.0.1:${port}/`), session.connectUrl);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(pages.a);
  assert.equal(await page?.title(), 'Through HAProxy');
  const largeText = 'x'.repeat(3_000_000);
  assert.equal(await page?.evaluate(text => text, largeText), largeText);
  await browser.close();
  await post(`/v1/browsers/sessions/${session.id}`, { status: 'REQUEST_RELEASE' });
});

test('the server uses the caller address that the proxy sees, not the address that the caller claims', async () => {
  const createResult = await server.operate('tokens', 'create', '--cidr', '203.0.113.0/24', '--json');
  assert.equal(createResult.code, 0, createResult.stderr);
  const headers = {
    authorization: `Bearer ${JSON.parse(createResult.stdout).token}`,
    'x-forwarded-for': '203.0.113.7',
  };
  assert.equal((await fetch(`${url}/v1/applications`, { headers })).status, 403);
});

test('metrics and readiness cannot be reached through the proxy', async () => {
  for (const path of ['/metrics', '/readyz']) assert.equal((await fetch(url + path)).status, 404);
});
