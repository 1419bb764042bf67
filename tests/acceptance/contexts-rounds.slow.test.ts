// Logs in twenty times on two sites, each time in a new session. Then runs ten sessions whose browser is killed at a
// random time. Only the losses that docs/contexts.md documents may occur.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContext, persistentBody, waitForContextEvent, waitForVersion } from '../harness/contexts.ts';
import { killBox } from '../harness/kill-box.ts';
import {
  allMarks,
  findMarks,
  LOGIN_PAGES,
  leaveMarks,
  marksWithoutWorker,
  runOnPage,
  sitesOf,
} from '../harness/logged-in.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';

/** The longest time until cookies are copied: three intervals of five seconds, to allow for a busy machine. */
const COPY_MS_MAX = 15_000;
const KILL_DELAY_MS_MAX = 18_000;

const pages = await openPages(LOGIN_PAGES);
const server = await startServer({ pages, env: { BERTH_DISCONNECT_GRACE: '0' } });
const { secure, plain } = sitesOf(pages);

test('twenty consecutive sessions with one context keep all data of two sites', async () => {
  const { id } = await createContext(server);
  for (let round = 1; round <= 20; round++) {
    const session = await server.createSession(persistentBody(id));
    await runOnPage(session.connectUrl, async page => {
      if (round > 1) {
        assert.deepEqual(await findMarks(page, secure), allMarks(`r${round - 1}`), `round ${round}`);
        assert.deepEqual(await findMarks(page, plain), marksWithoutWorker(`r${round - 1}`), `round ${round}`);
      }
      await leaveMarks(page, secure, `r${round}`);
      await leaveMarks(page, plain, `r${round}`);
    });
    await waitForVersion(server, id, round);
  }
});

test('a SIGKILL at a random time loses at most the latest cookies and the storage of the killed session', async () => {
  const { id } = await createContext(server);
  const firstSession = await server.createSession(persistentBody(id));
  await runOnPage(firstSession.connectUrl, page => leaveMarks(page, secure, 'whole'));
  await waitForVersion(server, id, 1);
  let lastCookie = 'whole';
  for (let round = 1; round <= 10; round++) {
    const session = await server.createSession({ keepAlive: true, ...persistentBody(id) });
    await runOnPage(session.connectUrl, async page => {
      const { persistentCookie, sessionCookie, ...stored } = await findMarks(page, secure);
      const { persistentCookie: _, sessionCookie: __, ...whole } = allMarks('whole');
      assert.deepEqual(stored, whole, `round ${round}: storage is that of the last whole save`);
      assert.equal(persistentCookie, lastCookie, `round ${round}`);
      assert.equal(sessionCookie, lastCookie, `round ${round}`);
      await leaveMarks(page, secure, `k${round}`);
    });
    const waitMs = Math.random() * KILL_DELAY_MS_MAX;
    await new Promise(resolve => setTimeout(resolve, waitMs));
    killBox(server.dataDir, session.id);
    assert.equal((await server.waitUntilEnded(session.id)).endReason, 'crashed');
    await waitForContextEvent(server, session.id, 'context.saved_partially');
    await waitForVersion(server, id, round + 1);
    lastCookie = await cookieNow(id);
    const allowedCookies = waitMs > COPY_MS_MAX ? [`k${round}`] : [`k${round}`, lastCookieBefore(round)];
    assert.ok(allowedCookies.includes(lastCookie), `killed after ${waitMs} ms, the cookie is ${lastCookie}`);
    cookiesByRound.set(round, lastCookie);
  }
});

const cookiesByRound = new Map<number, string>();
const lastCookieBefore = (round: number): string => cookiesByRound.get(round - 1) ?? 'whole';

async function cookieNow(id: string): Promise<string> {
  const path = `/v1/browsers/contexts/${id}/storage-state`;
  const { body } = await server.api<{ cookies: Array<{ name: string; value: string }> }>('GET', path);
  return body.cookies.find(({ name }) => name === 'persistent')?.value ?? 'none';
}
