// File transfers through the service, compared with transfers of the same bytes through a plain HTTP server that only
// writes and reads a file. The two kinds of transfer alternate.
import { createReadStream, createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { chromium } from 'playwright-core';
import type { DownloadPage } from '../contract/files.ts';
import type { CreatedSession, TestServer } from '../tests/harness/server.ts';
import { eventually } from '../tests/harness/until.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const MIB = 1024 ** 2;
const SIZE_MIB = 256;
const FILE_BYTES = SIZE_MIB * MIB;
const DOWNLOAD_TIMEOUT_MS = 60_000;
const MIB_CHUNK = Buffer.alloc(MIB, 'berth');

export interface FilesFigure {
  readonly name: 'upload' | 'download';
  /** MiB per second. */
  readonly comparison: Comparison;
}

export async function measureFiles(server: TestServer, rounds: number): Promise<readonly FilesFigure[]> {
  const session = await server.createSession({ keepAlive: true });
  const plainServer = await startPlainServer();
  const speeds = { up: [] as number[], plainUp: [] as number[], down: [] as number[], plainDown: [] as number[] };
  try {
    const downloadUrl = await downloadOnce(server, session);
    const uploadUrl = `${server.url}/v1/browsers/sessions/${session.id}/uploads`;
    for (let round = 0; round < rounds; round++) {
      speeds.plainUp.push(await measureSpeed(() => uploadFile(plainServer.url, {})));
      speeds.up.push(await measureSpeed(() => uploadFile(uploadUrl, { authorization: `Bearer ${server.key}` })));
      speeds.plainDown.push(await measureSpeed(() => downloadFile(plainServer.url)));
      speeds.down.push(await measureSpeed(() => downloadFile(downloadUrl)));
    }
  } finally {
    plainServer.close();
    await server.release(session.id);
  }
  return [
    { name: 'upload', comparison: comparisonOf(speeds.plainUp, speeds.up) },
    { name: 'download', comparison: comparisonOf(speeds.plainDown, speeds.down) },
  ];
}

/** Downloads a file that the page creates itself, so that the network is not measured. */
async function downloadOnce(server: TestServer, { id, connectUrl }: CreatedSession): Promise<string> {
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.evaluate(
    `Object.assign(document.createElement('a'), { download: 'bench.bin',
      href: URL.createObjectURL(new Blob(Array(${SIZE_MIB}).fill(new Uint8Array(${MIB}).fill(98)))) }).click()`,
  );
  const readDownloads = async () =>
    (await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${id}`)).body;
  const { downloads } = await eventually(
    'the download of the bench',
    readDownloads,
    ({ total }) => total === 1,
    DOWNLOAD_TIMEOUT_MS,
  );
  await browser.close();
  return String(downloads[0]?.downloadUrl);
}

async function startPlainServer(): Promise<{ url: string; close(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-files-'));
  const path = join(folder, 'plain');
  const plainServer = createServer((incoming, response) => {
    const work = incoming.method === 'POST' ? store(incoming, path) : pipeline(createReadStream(path), response);
    work.then(
      () => response.end(),
      () => response.destroy(),
    );
  });
  await new Promise<void>(resolve => plainServer.listen(0, '127.0.0.1', resolve));
  const address = plainServer.address();
  const close = (): void => {
    plainServer.close();
    rmSync(folder, { recursive: true });
  };
  return { url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`, close };
}

/** Syncs the file to disk before the response, as the server does. */
async function store(incoming: IncomingMessage, path: string): Promise<void> {
  await pipeline(incoming, createWriteStream(path, { flush: true }));
}

async function measureSpeed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (1000 * SIZE_MIB) / (performance.now() - startMs);
}

async function uploadFile(url: string, headers: Record<string, string>): Promise<void> {
  const head = Buffer.from('--b\r\ncontent-disposition: form-data; name="file"; filename="bench.bin"\r\n\r\n');
  const tail = Buffer.from('\r\n--b--\r\n');
  const length = head.length + FILE_BYTES + tail.length;
  const type = 'multipart/form-data; boundary=b';
  const uploadRequest = request(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': type, 'content-length': length },
  });
  const uploadCompletion = new Promise<void>((resolve, reject) => {
    uploadRequest.once('response', response => {
      response
        .resume()
        .once('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${url} responded with ${response.statusCode}`)),
        );
    });
    uploadRequest.once('error', reject);
  });
  const body = function* () {
    yield head;
    for (let i = 0; i < SIZE_MIB; i++) yield MIB_CHUNK;
    yield tail;
  };
  await pipeline(Readable.from(body()), uploadRequest);
  await uploadCompletion;
}

async function downloadFile(url: string): Promise<void> {
  const downloadResponse = await fetch(url);
  let byteCount = 0;
  for await (const chunk of downloadResponse.body ?? []) byteCount += chunk.length;
  if (byteCount < FILE_BYTES) throw new Error(`${url} returned ${byteCount} bytes, expected ${SIZE_MIB} MiB`);
}
