// Several clients of one browser. Channels are isolated, responses arrive in order, and commands to crashed or closed
// targets get a response.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CdpClient, type CdpMessage } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { findBusiestRenderer } from '../harness/session-processes.ts';
import { eventually } from '../harness/until.ts';

const COMMAND_COUNT = 200;
const NO_SUCH_CHANNEL_ERROR = { code: -32001, message: 'Session with given id not found.' };
/**
 * A script with a fixed number of operations. A script with a fixed duration would not suit machines of every speed.
 */
const COMPUTE_SCRIPT = 'let sum = 0; for (let n = 0; n < 3e8; n++) sum += n; void sum;';

const pages = await openPages();
const server = await startServer({ pages });

async function withTwoClients(work: (one: CdpClient, two: CdpClient, session: CreatedSession) => Promise<void>) {
  const session = await server.createSession({ keepAlive: true });
  const clients = [await CdpClient.connect(session.connectUrl), await CdpClient.connect(session.connectUrl)] as const;
  try {
    await work(...clients, session);
    for (const client of clients) await client.close();
  } finally {
    await server.release(session.id);
  }
}

const outcomeOf = ({ result, error }: CdpMessage): string => error?.message ?? JSON.stringify(result);

test('each client gets its own responses if two clients use the same message ids', () =>
  withTwoClients(async (one, two) => {
    const pageOfOne = await one.attachToPage();
    const pageOfTwo = await two.attachToPage();
    const commands = Array.from({ length: COMMAND_COUNT }, async (_, index) => {
      assert.equal(await one.evaluate(`'one ' + ${index}`, pageOfOne), `one ${index}`);
      assert.equal(await two.evaluate(`'two ' + ${index}`, pageOfTwo), `two ${index}`);
    });
    await Promise.all(commands);
  }));

test('a command on a channel of another client gets the same error as a command on an unknown channel', () =>
  withTwoClients(async (one, two) => {
    const page = await one.attachToPage();
    for (const channel of [page, '0'.repeat(32), 'x', page.toLowerCase()]) {
      assert.deepEqual((await two.ask('Runtime.evaluate', { expression: '1' }, channel)).error, NO_SUCH_CHANNEL_ERROR);
      assert.ok((await two.ask('Target.detachFromTarget', { sessionId: channel })).error);
    }
    assert.equal(await one.evaluate('6 * 7', page), 42);
    await one.send('Target.detachFromTarget', { sessionId: page });
    assert.deepEqual((await one.ask('Runtime.evaluate', { expression: '1' }, page)).error, NO_SUCH_CHANNEL_ERROR);
  }));

test('commands are executed in order, even if some commands are checked asynchronously', () =>
  withTwoClients(async one => {
    const page = await one.attachToPage();
    await one.evaluate('globalThis.seen = []', page);
    const commands = Array.from({ length: COMMAND_COUNT }, (_, index) => {
      // The policy checks these two commands asynchronously.
      if (index % 10 === 0) void one.ask('Target.createBrowserContext', { proxyServer: 'none' });
      if (index % 10 === 5) void one.ask('Page.navigate', { url: 'chrome://version' }, page);
      return one.evaluate(`seen.push(${index})`, page);
    });
    await Promise.all(commands);
    const expectedOrder = Array.from({ length: COMMAND_COUNT }, (_, index) => index);
    assert.deepEqual(await one.evaluate('seen', page), expectedOrder);
  }));

test('every client gets a response to its pending commands when a page crashes, and after a reload the page works again for every client', () =>
  withTwoClients(async (one, two) => {
    const [page, pageOfTwo] = [await one.attachToPage(), await two.attachToPage()];
    await one.visit(`${pages.url}/`, page);
    const expression = 'new Promise(() => {})';
    const pendingCommands = [
      one.ask('Runtime.evaluate', { expression, awaitPromise: true }, page),
      two.ask('Runtime.evaluate', { expression, awaitPromise: true }, pageOfTwo),
    ];
    await two.send('Browser.getVersion'); // Once the browser responds, it has received the earlier messages.
    pendingCommands.push(one.ask('Page.crash', {}, page));
    for (const outcome of await Promise.all(pendingCommands)) assert.match(outcomeOf(outcome), /Target crashed/);
    await one.send('Page.reload', {}, page);
    for (const [client, session] of [
      [one, page],
      [two, pageOfTwo],
    ] as const) {
      // A command fails while the page is being reloaded.
      const readTitle = (): Promise<unknown> => client.evaluate('document.title', session).catch(String);
      await eventually('the page to work again', readTitle, seen => seen === 'Home');
    }
    await two.visit(`${pages.url}/next`, pageOfTwo);
    assert.equal(await one.evaluate('document.title', page), 'Next');
  }));

test('pending commands get a response when the process of their page is killed, and other pages keep working', () =>
  withTwoClients(async (one, two, session) => {
    const page = await one.attachToPage();
    await one.visit(`${pages.a}/`, page);
    const { targetId } = await two.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await two.send('Target.attachToTarget', { targetId, flatten: true });
    const killedChannel = String(sessionId);
    await two.visit(`${pages.b}/next`, killedChannel);
    const { pid } = await findBusiestRenderer(session.id, () => two.evaluate(COMPUTE_SCRIPT, killedChannel));
    const pendingCommand = two.ask(
      'Runtime.evaluate',
      { expression: 'new Promise(() => {})', awaitPromise: true },
      killedChannel,
    );
    await two.send('Browser.getVersion'); // Once the browser responds, it has received the earlier messages.
    process.kill(pid, 'SIGKILL');
    assert.match(outcomeOf(await pendingCommand), /Target crashed/);
    assert.equal(await one.evaluate('document.title', page), 'Home');
    assert.equal((await server.read(session.id)).status, 'RUNNING');
  }));

test('pending commands get a response when their page is closed', () =>
  withTwoClients(async (one, two) => {
    const { targetId } = await one.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await one.send('Target.attachToTarget', { targetId, flatten: true });
    const endlessEvaluation = { expression: 'new Promise(() => {})', awaitPromise: true };
    const pendingCommand = one.ask('Runtime.evaluate', endlessEvaluation, String(sessionId));
    await one.send('Browser.getVersion');
    await two.send('Target.closeTarget', { targetId });
    assert.ok((await pendingCommand).error);
  }));

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
