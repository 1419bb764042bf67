// Downloads as callers see them, from all sources: the first tab, popups, browser contexts of clients, downloads by
// header, and blob: and data: URLs.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { before, describe, it } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import yauzl from 'yauzl';
import type { Context } from '../../contract/contexts.ts';
import type { Download, DownloadPage } from '../../contract/files.ts';
import { createContext } from '../harness/contexts.ts';
import { filesUnder } from '../harness/files-under.ts';
import { createOwnerToken, readLimits, setLimits } from '../harness/limits.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { openChosenStore } from '../harness/s3.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents, waitForSessionEvent } from '../harness/session-events.ts';
import { browserProcessOf } from '../harness/session-processes.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const REPORT_BYTES = randomBytes(200_000);
/**
 * The number of delays that are tried: 0 ms, 1 ms, 2 ms and so on. With one of these delays, the response should arrive
 * while the client is disconnecting.
 */
const DELAY_COUNT = 14;
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** Sends the remaining bytes of the newest slow download. */
let finishSlowDownload = (): unknown => assert.fail('no slow download has begun');

const pages = await openPages({
  '/files':
    '<!doctype html><title>Files</title><a id=report href=/report>report</a><a id=named href=/plain download="Gr\u00fc\u00dfe \u2602.csv">named</a>' +
    '<a id=slow href=/slow>slow</a><a id=popup href=/report target=_blank>popup</a>' +
    '<a id=blob download="from blob.txt">blob</a><a id=data download=data.json href="data:application/json,%7B%22a%22:1%7D">data</a>' +
    '<script>blob.href = URL.createObjectURL(new Blob(["blob bytes"]))</script>',
  '/report': (_, response) => {
    const headers = { 'content-type': 'application/pdf', 'content-disposition': 'attachment; filename="report.pdf"' };
    response.writeHead(200, headers).end(Buffer.concat([Buffer.from('%PDF-1.7\n'), REPORT_BYTES]));
  },
  '/late': ({ url }, response) => {
    const headers = { 'content-disposition': 'attachment; filename=late.bin' };
    setTimeout(() => response.writeHead(200, headers).end('late'), Number(url?.split('?')[1]));
  },
  '/told': (_, response) => {
    const headers = {
      'content-type': 'Text/Calendar; charset=utf-8',
      'content-disposition': 'attachment; filename=told',
    };
    response.writeHead(200, headers).end('BEGIN:VCALENDAR\n');
  },
  '/untold': (_, response) => {
    const headers = {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename=untold',
    };
    response.writeHead(200, headers).end('%PDF-1.7\n');
  },
  '/plain': (_, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('a,b\n1,2\n'),
  '/empty': (_, response) =>
    void response.writeHead(200, { 'content-disposition': 'attachment; filename=empty' }).end(),
  '/endless': (_, response) => {
    const headers = { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename=endless.zip' };
    response.writeHead(200, headers);
    const more = setInterval(() => response.write(Buffer.alloc(500_000)), 50);
    response.once('close', () => clearInterval(more));
  },
  '/slow': (_, response) => {
    const headers = { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename=slow.zip' };
    response.writeHead(200, { ...headers, 'content-length': '1000000' });
    response.write(randomBytes(100_000));
    finishSlowDownload = () => response.end(randomBytes(900_000));
  },
});
const store = await openChosenStore();
const server = await startServer({ pages, env: { BERTH_SESSION_DOWNLOADS: '5000000', ...store?.env } });
const PDF = Buffer.concat([Buffer.from('%PDF-1.7\n'), REPORT_BYTES]);

const list = async (session: string, query = ''): Promise<DownloadPage> => {
  const response = await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session}${query}`);
  assert.equal(response.status, 200, response.text);
  return response.body;
};
/** Waits until at least this many downloads are listed. */
const waitForDownloads = async (session: string, count: number, query = ''): Promise<readonly Download[]> =>
  (
    await eventually(
      `${count} downloads to be listed`,
      () => list(session, query),
      ({ total }) => total >= count,
    )
  ).downloads;
const bytesOf = async (url: string, headers: Record<string, string> = {}): Promise<Buffer> => {
  const response = await fetch(url, { headers });
  assert.ok(response.ok, `${response.status}`);
  return Buffer.from(await response.arrayBuffer());
};

async function withPage(
  body: object,
  work: (page: Page, session: CreatedSession, browser: Browser) => Promise<void>,
): Promise<void> {
  const session = await server.createSession(body);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.a}/files`);
  await work(page, session, browser);
  await browser.close();
  await server.release(session.id).catch(() => {});
}

describe('downloads are recorded and listed', () => {
  it('downloads are listed with name, size, type and checksum while the session is running', () =>
    withPage({}, async (page, { id }) => {
      await page.click('#report');
      const [download] = await waitForDownloads(id, 1);
      assert.deepEqual(
        { ...download, id: '', createdAt: '', downloadUrl: '', downloadUrlExpiresAt: '' },
        {
          ...{ id: '', sessionId: id, filename: 'report.pdf', mimeType: 'application/pdf', size: PDF.length },
          ...{ checksum: sha256(PDF), createdAt: '', downloadUrl: '', downloadUrlExpiresAt: '' },
        },
      );
      assert.ok((await bytesOf(String(download?.downloadUrl))).equals(PDF));
      assert.equal((await server.read(id)).status, 'RUNNING');
    }));

  it('downloads are listed in the order of their completion', () =>
    withPage({}, async (page, { id }) => {
      const downloadEvent = page.waitForEvent('download');
      await page.click('#slow');
      await downloadEvent;
      await page.click('#report');
      const [first] = await waitForDownloads(id, 1);
      finishSlowDownload();
      const [, slow] = await waitForDownloads(id, 2);
      const names = (await list(id)).downloads.map(({ filename }) => filename);
      assert.deepEqual(
        [names, first?.filename, slow?.filename],
        [['report.pdf', 'slow.zip'], 'report.pdf', 'slow.zip'],
      );
      const polledPage = await list(id, `&createdAfter=${first?.createdAt}`);
      assert.equal(polledPage.total, 2, 'a caller that polls from the newest one sees the slow one');
    }));

  it('a download has the type that the site sent, or the type detected from its bytes', () =>
    withPage({}, async (page, { id }) => {
      for (const [path, filename, mimeType] of [
        ['/told', 'told', 'text/calendar'],
        ['/untold', 'untold', 'application/pdf'],
      ]) {
        await page.evaluate(`location.assign('${pages.a}${path}')`);
        const [download] = await waitForDownloads(id, 1, `&filename=${filename}`);
        assert.equal(download?.mimeType, mimeType);
      }
    }));

  it('downloads with equal names and downloads from popups, blob: URLs, data: URLs and new browser contexts are recorded', () =>
    withPage({}, async (page, { id }, browser) => {
      await page.click('#report');
      await waitForDownloads(id, 1);
      await page.click('#report');
      await waitForDownloads(id, 2);
      await page.click('#named');
      await page.click('#blob');
      await page.click('#data');
      await waitForDownloads(id, 5);
      const popupEvent = page.context().waitForEvent('page');
      await page.click('#popup');
      await popupEvent;
      await waitForDownloads(id, 6);
      const otherPage = await (await browser.newContext()).newPage();
      await otherPage.goto(`${pages.b}/files`);
      await otherPage.click('#report');
      await waitForDownloads(id, 7); // the next navigation would cancel a download whose response has not arrived
      await otherPage.goto(`${pages.b}/empty`).catch(() => {}); // Playwright fails a navigation that becomes a download
      const downloads = await waitForDownloads(id, 8);
      assert.deepEqual(downloads.map(({ filename }) => filename).sort(), [
        'Gr\u00fc\u00dfe \u2602.csv',
        'data.json',
        'empty',
        'from blob.txt',
        ...Array.from({ length: 4 }, () => 'report.pdf'),
      ]);
      const downloadNamed = (name: string) => downloads.find(({ filename }) => filename === name);
      assert.equal(downloadNamed('from blob.txt')?.checksum, sha256('blob bytes'));
      assert.deepEqual(
        [downloadNamed('data.json')?.mimeType, downloadNamed('data.json')?.size],
        ['application/json', 7],
      );
      assert.equal(downloadNamed('Gr\u00fc\u00dfe \u2602.csv')?.mimeType, 'text/csv');
      assert.deepEqual([downloadNamed('empty')?.size, downloadNamed('empty')?.checksum], [0, sha256('')]);
    }));

  it('downloads are recorded even if a client sets its own download path, and the client gets correct events', () =>
    withPage({}, async (page, { id }, browser) => {
      // Playwright sets a download folder on its own machine when it connects.
      const downloadEvent = page.waitForEvent('download');
      await page.click('#report');
      const download = await downloadEvent;
      assert.equal(download.suggestedFilename(), 'report.pdf');
      assert.equal(await download.failure(), null);
      // Playwright looks for the file on its own machine, where the file does not exist.
      await assert.rejects(download.saveAs('/tmp/berth-never-written'), /ENOENT|no such file/);
      const client = await browser.newBrowserCDPSession();
      await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: 'downloads' });
      // Each click waits for the previous download, because a click cancels a download whose response has not arrived.
      await page.click('#named');
      await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: '/etc' });
      await waitForDownloads(id, 2);
      await page.click('#data');
      await waitForDownloads(id, 3);
      await client.detach();
      await page.click('#blob');
      const names = (await waitForDownloads(id, 4)).map(({ filename }) => filename).sort();
      assert.deepEqual(names, ['Grüße ☂.csv', 'data.json', 'from blob.txt', 'report.pdf']);
    }));

  it('a download is kept when the client disconnects immediately after the click', async () => {
    const session = await server.createSession({ keepAlive: true });
    for (let round = 1; round <= 12; round++) {
      const browser = await chromium.connectOverCDP(session.connectUrl);
      const page = browser.contexts()[0]?.pages()[0];
      if (round === 1) await page?.goto(`${pages.a}/files`);
      await waitForDownloads(session.id, round - 1); // a second click would cancel a download whose response has not arrived
      await page?.click('#report');
      await browser.close();
    }
    await waitForDownloads(session.id, 12);
    await server.release(session.id);
  });

  it('Puppeteer gets the events of a download, and can deny downloads', async () => {
    const session = await server.createSession({ keepAlive: true });
    const browser = await puppeteer.connect({ browserWSEndpoint: session.connectUrl, defaultViewport: null });
    const [page] = await browser.pages();
    assert.ok(page);
    await page.goto(`${pages.a}/files`);
    const client = await browser.target().createCDPSession();
    await client.send('Browser.setDownloadBehavior', {
      ...{ behavior: 'allow', downloadPath: '/srv/somebody/downloads', eventsEnabled: true },
    });
    const told: string[] = [];
    client.on('Browser.downloadWillBegin', ({ suggestedFilename }) => told.push(suggestedFilename));
    client.on('Browser.downloadProgress', ({ state }) => state === 'inProgress' || told.push(state));
    await page.click('#report');
    await waitForDownloads(session.id, 1);
    await eventually('both events of the download', () => told.length === 2);
    assert.deepEqual(told, ['report.pdf', 'completed']);
    await client.send('Browser.setDownloadBehavior', { behavior: 'deny', eventsEnabled: true });
    await page.click('#report');
    await eventually('the download to be cancelled', () => told.includes('canceled'));
    assert.equal((await list(session.id)).total, 1);
    await browser.disconnect();
    await server.release(session.id);
  });

  it('a download with a delayed response is kept when its client disconnects immediately', async () => {
    const { id, connectUrl } = await server.createSession({ keepAlive: true });
    for (let delayMs = 0; delayMs < DELAY_COUNT; delayMs++) {
      const browser = await chromium.connectOverCDP(connectUrl);
      const page = browser.contexts()[0]?.pages()[0];
      await waitForDownloads(id, delayMs); // the next navigation would cancel a download whose response has not arrived
      await page?.goto(`${pages.a}/files`);
      await page?.evaluate(`report.href = '/late?${delayMs}'`);
      await page?.click('#report', { noWaitAfter: true });
      await browser.close();
    }
    assert.equal((await waitForDownloads(id, DELAY_COUNT)).length, DELAY_COUNT);
    await server.release(id);
  });

  it('only downloads that were complete when the browser ended are listed', async () => {
    for (const end of ['release', 'kill'] as const) {
      const session = await server.createSession({ keepAlive: true });
      const browser = await chromium.connectOverCDP(session.connectUrl);
      const page = browser.contexts()[0]?.pages()[0];
      await page?.goto(`${pages.a}/files`);
      const downloadEvent = page?.waitForEvent('download');
      await page?.click('#slow');
      await downloadEvent;
      await page?.click('#report');
      await waitForDownloads(session.id, 1);
      if (end === 'release') await server.release(session.id);
      else process.kill(browserProcessOf(session.id).pid, 'SIGKILL');
      await server.waitUntilEnded(session.id);
      await browser.close();
      const failedEvents = await listEvents(server, session.id, 'download.failed');
      assert.deepEqual(
        failedEvents.map(({ detail }) => detail.filename),
        ['slow.zip'],
      );
      const { downloads, total } = await list(session.id);
      assert.deepEqual([total, downloads[0]?.filename, downloads[0]?.checksum], [1, 'report.pdf', sha256(PDF)]);
    }
  });

  it('a download that exceeds the limit of the session is cancelled, and an event records the limit', () =>
    withPage({}, async (page, { id }) => {
      await page.click('#named');
      await waitForDownloads(id, 1);
      await page.evaluate("location.href = '/endless'");
      const [failedEvent] = await eventually(
        'the download to fail',
        () => listEvents(server, id, 'download.failed'),
        events => events.length > 0,
      );
      assert.match(String(failedEvent?.detail.reason), /exceed their limit of 5000000 bytes/);
      assert.equal((await list(id)).total, 1);
      assert.equal((await server.read(id)).status, 'RUNNING');
      await page.click('#report');
      await waitForDownloads(id, 2);
    }));
});

it('downloads, uploads and contexts count against the storage limit of the application, and files above the limit are refused', () =>
  withPage({ keepAlive: true }, async (page, { id }) => {
    const token = await createOwnerToken(server);
    const readUsedBytes = async (): Promise<number> => (await readLimits(server, token)).usage.browsers.maxStoredBytes;
    const bytesBefore = await readUsedBytes();
    await page.click('#report');
    await waitForDownloads(id, 1);
    assert.equal(await readUsedBytes(), bytesBefore + PDF.length);
    const send = async (): Promise<number> => {
      const made = await uploadRequest('a.bin', randomBytes(50_000));
      return (await server.api('POST', `/v1/browsers/sessions/${id}/uploads`, made)).status;
    };
    assert.equal(await send(), 200);
    assert.equal(await readUsedBytes(), bytesBefore + PDF.length + 50_000);
    const context = await createContext(server);
    const localStorage = [{ name: 'mark', value: 'x'.repeat(10_000) }];
    const body = { cookies: [], origins: [{ origin: pages.a, localStorage }] };
    const importResponse = await server.api<Context>('POST', `/v1/browsers/contexts/${context.id}/storage-state`, {
      body,
    });
    assert.equal(await readUsedBytes(), bytesBefore + PDF.length + 50_000 + importResponse.body.sizeBytes);
    await setLimits(server, token, { maxStoredBytes: (await readUsedBytes()) + 1000 });
    assert.equal(await send(), 413);
    await page.click('#report');
    const [failedEvent] = await waitForSessionEvent(server, id, 'download.failed');
    assert.match(
      String(failedEvent?.detail.reason),
      /the application would exceed its limit of \d+ stored bytes, of which \d+ are in use/,
    );
    await setLimits(server, token, {});
    await page.click('#report');
    await waitForDownloads(id, 2);
    await server.release(id);
    assert.equal(
      await readUsedBytes(),
      bytesBefore + 2 * PDF.length + importResponse.body.sizeBytes,
      'uploads go with their session',
    );
    assert.equal((await server.api('DELETE', `/v1/browsers/contexts/${context.id}`)).status, 204);
    await eventually('the context to be gone', readUsedBytes, bytes => bytes === bytesBefore + 2 * PDF.length);
  }));

describe('a download can be read and deleted', () => {
  let session: CreatedSession;
  let download: Download;
  const path = (): string => `/v1/browsers/downloads/${download.id}`;
  const acceptOptions = (type: string) => ({ headers: { accept: type } });

  before(async () => {
    session = await server.createSession({ keepAlive: true });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = browser.contexts()[0]?.pages()[0];
    await page?.goto(`${pages.a}/files`);
    await page?.click('#named');
    await waitForDownloads(session.id, 1);
    await page?.click('#report');
    const findReport = async () => (await list(session.id, '&filename=report.pdf')).downloads[0];
    await waitForDownloads(session.id, 2);
    // With a bucket, the object store's own link is returned once the file is stored.
    const isAvailable = (found?: Download) => found?.downloadUrl.startsWith(store?.endpoint ?? server.url) ?? false;
    const report = await eventually('the report to be available', findReport, isAvailable);
    assert.ok(report);
    download = report;
    await browser.close();
    await server.release(session.id);
  });

  it('a download can be found with each filter after the session has ended', async () => {
    const listNames = async (query: string) =>
      (await list(session.id, query)).downloads.map(({ filename }) => filename);
    const csv = 'Grüße ☂.csv';
    assert.deepEqual(await listNames(''), [csv, 'report.pdf']);
    assert.deepEqual(await listNames('&filename=report.pdf'), ['report.pdf']);
    assert.deepEqual(await listNames('&filename=report'), []);
    assert.deepEqual(await listNames('&mimeType=text/csv'), [csv]);
    assert.deepEqual(await listNames('&minSize=8&maxSize=8'), [csv]);
    assert.deepEqual(await listNames(`&minSize=${PDF.length}`), ['report.pdf']);
    assert.deepEqual(await listNames(`&createdAfter=${download.createdAt}`), ['report.pdf']);
    assert.deepEqual(await listNames(`&createdBefore=${session.createdAt}`), []);
    const page = await list(session.id, '&limit=1&offset=1');
    assert.deepEqual([page.total, page.limit, page.offset, page.downloads.length], [2, 1, 1, 1]);
    for (const bad of [
      '&limit=0',
      '&limit=101',
      '&offset=-1',
      '&minSize=x',
      '&createdAfter=yesterday',
      '&createdAfter=5',
    ])
      assert.equal((await server.api('GET', `/v1/browsers/downloads?sessionId=${session.id}${bad}`)).status, 400, bad);
    assert.equal((await server.api('GET', '/v1/browsers/downloads')).status, 400);
    assert.equal((await server.api('GET', `/v1/browsers/downloads?sessionId=${randomUUID()}`)).status, 404);
  });

  it('a download can be read as JSON or as bytes', async () => {
    const jsonResponse = await server.api<Download>('GET', path());
    assert.equal(jsonResponse.body.checksum, sha256(PDF));
    assert.notEqual(jsonResponse.body.downloadUrlExpiresAt, download.downloadUrlExpiresAt);
    const bytesResponse = await server.api('GET', path(), acceptOptions('application/octet-stream'));
    assert.deepEqual(
      ['content-type', 'content-length', 'etag', 'accept-ranges', 'x-content-type-options'].map(
        name => bytesResponse.headers[name],
      ),
      ['application/pdf', String(PDF.length), `"${sha256(PDF)}"`, 'bytes', 'nosniff'],
    );
    assert.match(
      String(bytesResponse.headers['content-disposition']),
      /^attachment; filename="report.pdf"; filename\*=UTF-8''/,
    );
    assert.equal((await server.api('GET', path(), acceptOptions('text/html'))).status, 406);
    const partResponse = await server.api('GET', path(), {
      headers: { accept: 'application/octet-stream', range: 'bytes=0-7' },
    });
    assert.deepEqual([partResponse.status, partResponse.text], [206, '%PDF-1.7']);
    assert.equal(partResponse.headers['content-range'], `bytes 0-7/${PDF.length}`);
    const rangeRefusal = await server.api('GET', path(), {
      headers: { accept: 'application/octet-stream', range: `bytes=${PDF.length}-` },
    });
    assert.deepEqual([rangeRefusal.status, rangeRefusal.headers['content-range']], [416, `bytes */${PDF.length}`]);
    assert.match(rangeRefusal.body.message, new RegExp(`Request a range that begins before byte ${PDF.length}`));
    const notModifiedResponse = await server.api('GET', path(), {
      headers: { accept: 'application/octet-stream', 'if-none-match': `"${sha256(PDF)}"` },
    });
    assert.deepEqual([notModifiedResponse.status, notModifiedResponse.text], [304, '']);
  });

  it('anyone with the link can get a download, and an altered link is refused', async () => {
    const { downloadUrl } = download;
    if (store) return assertServedByStore(downloadUrl);
    const response = await fetch(downloadUrl, { headers: { origin: 'https://elsewhere.test' } });
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(PDF));
    const headResponse = await fetch(downloadUrl, { method: 'HEAD' });
    assert.deepEqual([headResponse.status, headResponse.headers.get('content-length')], [200, String(PDF.length)]);
    const partResponse = await fetch(downloadUrl, { headers: { range: 'bytes=-5' } });
    assert.deepEqual([partResponse.status, (await partResponse.arrayBuffer()).byteLength], [206, 5]);
    for (const method of ['DELETE', 'POST', 'PUT'])
      assert.equal((await fetch(downloadUrl, { method })).status, 405, method);
    for (const url of [`${downloadUrl}x`, downloadUrl.slice(0, -1), downloadUrl.replace(/files\/./, 'files/x')]) {
      const refusal = await fetch(url);
      assert.equal(refusal.status, 403);
      assert.equal(Object(await refusal.json()).code, 'signed_url_invalid');
    }
    const token = downloadUrl.slice(downloadUrl.lastIndexOf('/') + 1);
    assert.ok(!server.log().some(line => line.includes(token)), 'the link is in no log');
  });

  it('the zip archive that official clients request contains all downloads of the session', async () => {
    const bytes = await bytesOf(`${server.url}/v1/sessions/${session.id}/downloads`, {
      authorization: `Bearer ${server.key}`,
    });
    const zip = await yauzl.fromBufferPromise(bytes);
    const checksums: Record<string, string> = {};
    for await (const entry of zip.eachEntry())
      checksums[entry.fileName] = sha256(await buffer(await zip.openReadStreamPromise(entry)));
    assert.deepEqual(checksums, { 'Grüße ☂.csv': sha256('a,b\n1,2\n'), 'report.pdf': sha256(PDF) });
  });

  it('a download of another application is not found', async () => {
    const foreignOptions = { key: await createOtherApplicationKey(server) };
    assert.equal(
      (await server.api('GET', `/v1/browsers/downloads?sessionId=${session.id}`, foreignOptions)).status,
      404,
    );
    for (const [method, options] of [
      ['GET', foreignOptions],
      ['GET', { ...foreignOptions, ...acceptOptions('application/octet-stream') }],
      ['DELETE', foreignOptions],
    ] as const)
      assert.equal((await server.api(method, path(), options)).status, 404);
    assert.equal((await server.api('GET', `/v1/sessions/${session.id}/downloads`, foreignOptions)).status, 404);
    assert.equal((await server.api('GET', path(), { key: null })).status, 401);
  });

  it('a deletion removes the row, the bytes and the links of a download', async () => {
    assert.equal((await server.api('DELETE', path())).status, 204);
    assert.equal((await fetch(download.downloadUrl)).status, 404);
    assert.equal((await server.api('GET', path())).status, 404);
    assert.equal((await server.api('DELETE', path())).status, 404);
    const resentDeleteResponse = await server.api('DELETE', path(), { headers: { 'x-stainless-retry-count': '1' } });
    assert.equal(resentDeleteResponse.status, 204);
    // With a bucket, no file is on the disk. The check of the link above is sufficient.
    const objectsFolder = join(server.dataDir, 'artifacts/objects');
    const kept = store ? [] : filesUnder(objectsFolder);
    assert.ok(!kept.some(name => name.includes(download.id)), 'no object is left');
    assert.equal((await list(session.id)).total, 1);
  });
});

/**
 * Asserts that the link belongs to the object store and returns the file. CORS is not tested, because the operator of
 * the store sets its CORS rules.
 */
async function assertServedByStore(link: string): Promise<void> {
  assert.ok(link.startsWith(`${store?.endpoint}/`), link);
  assert.ok((await bytesOf(link)).equals(PDF));
  const partResponse = await fetch(link, { headers: { range: 'bytes=0-4' } });
  assert.deepEqual([partResponse.status, await partResponse.text()], [206, '%PDF-']);
}
