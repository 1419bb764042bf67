// The nginx example from docs/guides/behind-tls.md, unchanged, in front of a server with the settings from the guide.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { chromium } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import { ensureConsoleBuilt } from '../harness/console.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { startNginx } from '../harness/nginx.ts';
import { openPages } from '../harness/pages.ts';
import { createSelfSignedCert } from '../harness/self-signed.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

await ensureConsoleBuilt();
const certificate = createSelfSignedCert('127.0.0.1');
setDefaultCACertificates([...getCACertificates('default'), certificate.cert.toString()]);
const port = await claimFreePort();
const url = `https://127.0.0.1:${port}`;
const pages = await openPages({ '/': '<!doctype html><title>Through TLS</title>' });
// The settings from the guide, with the addresses of the test.
const env = { BERTH_PUBLIC_URL: url, BERTH_TRUSTED_PROXIES: '127.0.0.1' };
const server = await startServer({ pages, env });
await startNginx(port, certificate, { '127.0.0.1:8080': new URL(server.url).host });

const agentHeaders = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
const ask = async <Body>(method: string, path: string, body?: object): Promise<Body> => {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url + path, { method, headers: agentHeaders, ...text });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as Body;
};

test('a session can be created, driven, watched and released through the proxy', async () => {
  assert.deepEqual(await ask('GET', '/healthz'), { status: 'ok' });
  const session = await ask<{ id: string; connectUrl: string }>('POST', '/v1/browsers/sessions', { keepAlive: true });
  assert.ok(session.connectUrl.startsWith(`wss://127.0.0.1:${port}/`), session.connectUrl);

  const eventsResponse = await fetch(`${url}/v1/browsers/sessions/${session.id}/events`, {
    headers: { ...agentHeaders, accept: 'text/event-stream' },
  });
  assert.match(eventsResponse.headers.get('content-type') ?? '', /^text\/event-stream/);
  const receivedTexts: string[] = [];
  const streamRead = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of eventsResponse.body ?? []) receivedTexts.push(decoder.decode(chunk, { stream: true }));
  })().catch(() => {}); // The stream breaks when nginx ends.

  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(pages.a);
  assert.equal(await page.title(), 'Through TLS');
  assert.ok((await page.screenshot()).length > 1000);
  // Larger than the proxy's buffers. The text passes through the proxy in both directions.
  const largeText = 'x'.repeat(3_000_000);
  assert.equal(await page.evaluate(text => text, largeText), largeText);

  const { debuggerUrl } = await ask<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
  assert.ok(debuggerUrl.startsWith(`${url}/`), debuggerUrl);
  assert.equal((await fetch(debuggerUrl)).status, 200);
  const viewer = await LiveViewer.open(debuggerUrl);
  await eventually('a frame of the live view', () => viewer.frameCount > 0);
  await viewer.takeControl();
  await viewer.close();

  await browser.close();
  await ask('POST', `/v1/browsers/sessions/${session.id}`, { status: 'REQUEST_RELEASE' });
  await eventually('the end in the stream', () => receivedTexts.join('').includes('session.ended'));
  await eventsResponse.body?.cancel().catch(() => {});
  void streamRead;
});

test('the server uses the caller address that the proxy sees, not the address that the caller claims', async () => {
  const createToken = async (cidr: string): Promise<string> => {
    const { code, stdout, stderr } = await server.operate('tokens', 'create', '--cidr', cidr, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout).token;
  };
  const [localToken, otherToken] = [await createToken('127.0.0.1/32'), await createToken('203.0.113.0/24')];
  const statusOf = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': '203.0.113.7' };
    return (await fetch(`${url}/v1/applications`, { headers })).status;
  };
  assert.equal(await statusOf(localToken), 200);
  assert.equal(await statusOf(otherToken), 403);
});

test('metrics and readiness cannot be reached through the proxy', async () => {
  for (const path of ['/metrics', '/readyz']) assert.equal((await fetch(url + path)).status, 404);
});

test('the proxy accepts an upload that is larger than the default limit of nginx', async () => {
  const session = await ask<{ id: string }>('POST', '/v1/browsers/sessions', { keepAlive: true });
  const form = new FormData();
  form.set('file', new Blob([Buffer.alloc(3_000_000)]), 'large.bin');
  const uploadResponse = await fetch(`${url}/v1/browsers/sessions/${session.id}/uploads`, {
    method: 'POST',
    headers: { authorization: agentHeaders.authorization },
    body: form,
  });
  assert.ok(uploadResponse.ok, await uploadResponse.text());
  await ask('POST', `/v1/browsers/sessions/${session.id}`, { status: 'REQUEST_RELEASE' });
});
