// Attacks on downloads and uploads: a hostile box puts links, FIFOs and foreign files among its downloads, a client
// sets file inputs to files of the host, and a stranger alters links.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, linkSync, mkdirSync, renameSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import type { DownloadPage } from '../../contract/files.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const SECRET = 'a secret of the host';
const GUID = '0f9c2a4e-1111-4222-8333-444455556666';
let finishDownload: (() => void) | undefined;
const pages = await openPages({
  '/files': '<!doctype html><a id=gated href=/gated>gated</a><input type=file id=file>',
  '/gated': (_, response) => {
    response.writeHead(200, { 'content-disposition': 'attachment; filename=gated.bin', 'content-length': '200000' });
    response.write(Buffer.alloc(100_000));
    finishDownload = () => void response.end(Buffer.alloc(100_000));
  },
});
const server = await startServer({ pages });
const secretFile = join(server.dataDir, 'attack-secret');
writeFileSync(secretFile, SECRET);

const boxFolder = (id: string): string => join(server.dataDir, 'sessions', server.boxOf(id) ?? id, 'box');
const listDownloads = async (id: string): Promise<DownloadPage> =>
  (await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${id}`)).body;

async function withPage(work: (page: Page, session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.a}/files`);
  await work(page, session);
  await browser.close().catch(() => {});
  await server.release(session.id).catch(() => {}); // The test may have released the session already.
}

/** Files that a hostile box creates in its downloads folder, which is read on a release and on an adoption. */
const PLANTED_FILES: Readonly<Record<string, (path: string) => void>> = {
  'a link to a file of the host': path => symlinkSync(secretFile, path),
  'a link to a folder of the host': path => symlinkSync('/etc', path),
  'a hard link to a file of the host': path => linkSync(secretFile, path),
  'a pipe without a writer': path => void execFileSync('mkfifo', [path]),
  'a folder': path => mkdirSync(path),
};

describe('downloads of a hostile box', () => {
  for (const [what, plant] of Object.entries(PLANTED_FILES))
    it(`a hostile box that plants ${what} among its downloads adds nothing to the list of downloads`, () =>
      withPage(async (_, { id }) => {
        const downloadsFolder = join(boxFolder(id), 'downloads');
        mkdirSync(downloadsFolder, { recursive: true });
        plant(join(downloadsFolder, GUID));
        await server.restart();
        await eventually('the adopting server to report the download', async () =>
          (await listEvents(server, id, 'download.failed')).some(({ detail }) =>
            /cannot be stored/.test(String(detail.reason)),
          ),
        );
        assert.equal((await listDownloads(id)).total, 0);
        await server.release(id);
        assert.equal((await listDownloads(id)).total, 0);
      }));

  it('if a hostile box replaces its downloads folder with a link during a download, the download fails and is not listed', () =>
    withPage(async (page, { id }) => {
      await page.evaluate("document.querySelector('#gated').click()");
      const downloadsFolder = join(boxFolder(id), 'downloads');
      await eventually(
        'the download to begin',
        () => finishDownload !== undefined && statSync(downloadsFolder, { throwIfNoEntry: false })?.isDirectory(),
      );
      renameSync(downloadsFolder, `${downloadsFolder}-aside`);
      mkdirSync(join(server.dataDir, 'elsewhere'), { recursive: true });
      symlinkSync(join(server.dataDir, 'elsewhere'), downloadsFolder);
      finishDownload?.();
      await eventually('the failure', async () => (await listEvents(server, id, 'download.failed')).length === 1);
      assert.equal((await listDownloads(id)).total, 0);
      unlinkSync(downloadsFolder);
    }));

  it('a hostile box cannot pass off a file of another user as its download', () =>
    withPage(async (_, { id }) => {
      if (process.getuid?.() !== 0) return; // Only root can create files of other users.
      const path = join(boxFolder(id), 'downloads', GUID);
      mkdirSync(join(boxFolder(id), 'downloads'), { recursive: true });
      writeFileSync(path, SECRET);
      chownSync(path, 0, 0);
      await server.restart();
      await eventually('the refusal', async () => (await listEvents(server, id, 'download.failed')).length === 1);
      assert.equal((await listDownloads(id)).total, 0);
      unlinkSync(path);
    }));
});

describe('files that a client attaches', () => {
  it('a client cannot attach a file of the host to a file input, however the path is spelled', () =>
    withPage(async page => {
      const client = await page.context().newCDPSession(page);
      const { root } = await client.send('DOM.getDocument');
      const { nodeId } = await client.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#file' });
      for (const path of [
        '/etc/passwd',
        secretFile,
        '/proc/self/environ',
        '/tmp/.uploads/../../etc/passwd',
        '/session/downloads/../profile/Default/Cookies',
        '/tmp/.uploads',
        '/tmp/.uploadsx/a',
        './etc/passwd',
        'file:///etc/passwd',
        '/tmp/.uploads/a\0/../../etc/passwd',
        '',
      ])
        await assert.rejects(
          client.send('DOM.setFileInputFiles', { nodeId, files: [path] }),
          /refused|only files under/,
          path,
        );
      assert.equal(await page.evaluate("document.querySelector('#file').files.length"), 0);
    }));
});
