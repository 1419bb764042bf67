// Large files: 1 GiB uploaded and attached, 2 GiB downloaded and served, while the server uses little memory.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Download, DownloadPage, UploadResponse } from '../../contract/files.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const MIB = 1024 ** 2;
const GIB = 1024 * MIB;
const GROWTH_BYTES_MAX = 300 * MIB;
const DOWNLOAD_TIMEOUT_MS = 300_000;
const megabyte = randomBytes(MIB);

const pages = await openPages({
  '/form': '<!doctype html><title>Form</title><input type=file id=file><a id=large href=/large>large</a>',
  '/large': (_, response) => {
    const headers = { 'content-disposition': 'attachment; filename=large.bin', 'content-length': String(2 * GIB) };
    response.writeHead(200, { ...headers, 'content-type': 'application/octet-stream' });
    pipeline(megabytes(2048), response).catch(() => {}); // Fails if the browser disconnects.
  },
});
const server = await startServer({ pages });

const megabytes = (count: number): Readable =>
  Readable.from(
    (function* () {
      for (let i = 0; i < count; i++) yield megabyte;
    })(),
  );
const checksumOf = (count: number): string => {
  const hash = createHash('sha256');
  for (let i = 0; i < count; i++) hash.update(megabyte);
  return hash.digest('hex');
};
const readResidentBytes = (): number =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]);

/** Runs the work, and returns the largest growth of the server's memory while the work was running, in bytes. */
async function measureGrowth(work: () => Promise<void>): Promise<number> {
  const bytesBefore = readResidentBytes();
  let peak = bytesBefore;
  const look = setInterval(() => {
    peak = Math.max(peak, readResidentBytes());
  }, 50);
  await work().finally(() => clearInterval(look));
  return peak - bytesBefore;
}

async function sendLarge(session: string, count: number): Promise<UploadResponse> {
  const head = Buffer.from(
    '--b\r\ncontent-disposition: form-data; name="file"; filename="large.bin"\r\ncontent-type: application/octet-stream\r\n\r\n',
  );
  const tail = Buffer.from('\r\n--b--\r\n');
  const outgoingRequest = request(`${server.url}/v1/browsers/sessions/${session}/uploads`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.key}`,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': head.length + count * MIB + tail.length,
    },
  });
  const uploadResponse = new Promise<UploadResponse>((resolve, reject) => {
    outgoingRequest.once('response', response => json(response).then(body => resolve(Object(body)), reject));
    outgoingRequest.once('error', reject);
  });
  const body = async function* () {
    yield head;
    yield* megabytes(count);
    yield tail;
  };
  await pipeline(body, outgoingRequest);
  return uploadResponse;
}

test('a file of 1 GiB can be uploaded and attached while the server uses little memory', async t => {
  const session = await server.createSession({ keepAlive: true });
  const growth = await measureGrowth(async () => {
    const uploadResponse = await sendLarge(session.id, 1024);
    assert.deepEqual([uploadResponse.size, uploadResponse.checksum], [GIB, checksumOf(1024)]);
  });
  t.diagnostic(`memory grew by ${Math.round(growth / MIB)} MiB`);
  assert.ok(growth < GROWTH_BYTES_MAX, `${growth / MIB} MiB`);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.a}/form`);
  const client = await page.context().newCDPSession(page);
  const { root } = await client.send('DOM.getDocument');
  const { nodeId } = await client.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#file' });
  await client.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/.uploads/large.bin'] });
  assert.equal(await page.evaluate("document.querySelector('#file').files[0].size"), GIB);
  const last = await page.evaluate(
    "document.querySelector('#file').files[0].slice(-4).arrayBuffer().then(bytes => [...new Uint8Array(bytes)])",
  );
  assert.deepEqual(last, [...megabyte.subarray(-4)]);
  await browser.close();
  await server.release(session.id);
});

test('a file of 2 GiB can be downloaded, stored and served while the server uses little memory', async t => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.a}/form`);
  const checksum = checksumOf(2048);
  const growth = await measureGrowth(async () => {
    await page.click('#large');
    const look = async (): Promise<Download | undefined> => {
      const path = `/v1/browsers/downloads?sessionId=${session.id}`;
      return (await server.api<DownloadPage>('GET', path)).body.downloads[0];
    };
    const download = await eventually('the download', look, Boolean, DOWNLOAD_TIMEOUT_MS);
    assert.deepEqual([download?.size, download?.checksum], [2 * GIB, checksum]);
    const hash = createHash('sha256');
    const response = await fetch(String(download?.downloadUrl));
    for await (const chunk of response.body ?? []) hash.update(chunk);
    assert.equal(hash.digest('hex'), checksum);
  });
  t.diagnostic(`memory grew by ${Math.round(growth / MIB)} MiB`);
  assert.ok(growth < GROWTH_BYTES_MAX, `${growth / MIB} MiB`);
  await browser.close();
  await server.release(session.id);
});
