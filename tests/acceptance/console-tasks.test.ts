// Tasks of a first-time user, each with a maximum number of steps from the first page. A step is a click, a choice, or
// typing text and pressing Enter.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { type Browser, chromium, type FrameLocator, type Locator, type Page } from 'playwright-core';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { Session } from '../../contract/sessions.ts';
import { boxProcessesOf, kill } from '../faults/victims.ts';
import { ACTION_SCOPES, ActionAgent } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { DESKTOP, ensureConsoleBuilt, findConsoleLink, openWatchedPage, signInByHand } from '../harness/console.ts';
import { readHandoff, requestHandoff } from '../harness/handoffs.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows } from '../harness/other-person.ts';
import { FILE_NAME, FILE_TEXT, openPages } from '../harness/pages.ts';
import { insertSessions, insertUsageHistory } from '../harness/past.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

await ensureConsoleBuilt();
const pages = await openPages({
  '/shop': `<!doctype html><title>Harbour Shop</title><script>console.error('the card was refused')</script>`,
  '/sign-in-with': `<!doctype html><title>Sign in</title><style>body{margin:0}button{position:absolute;left:20px;top:40px;width:300px;height:40px}</style>
    <button onclick="window.open('/provider', '', 'width=500,height=400')">Sign in with a provider</button>`,
  '/provider': `<!doctype html><title>Provider</title><style>body{margin:0}input,button{position:absolute;left:20px;width:300px;height:40px}
    input{top:40px}button{top:140px}</style><input id="name"><button onclick="opener.document.title = 'Hello ' + document.querySelector('input').value; window.close()">Allow</button>`,
});
const upstream = await openUpstream();
upstream.respondTo('/orders', (_, response) => sendJson(response, 200, { state: 'shipped' }));
// This setting replaces the default of the test server, so it must allow both the pages and the upstream server.
const allowedAddresses = [new URL(pages.url).host, upstream.host].map(host => `127.0.0.1/32:${host.split(':')[1]}`);
const server = await startServer({ pages, env: { BERTH_SLOTS: '8', BERTH_EGRESS_ALLOW: allowedAddresses.join(',') } });
await insertSessions(server, 2_000);
await insertUsageHistory(server);
const link = findConsoleLink(server);
await Person.setUpOwner(server);

/** Counts the steps of the user. Waiting and reading are not steps. */
class User {
  readonly page: Page;
  steps = 0;

  constructor(page: Page) {
    this.page = page;
  }

  async click(on: Locator): Promise<void> {
    this.steps += 1;
    await on.click();
  }

  async choose(from: Locator, option: string): Promise<void> {
    this.steps += 1;
    await from.selectOption(option);
  }

  async type(into: Locator, text: string): Promise<void> {
    this.steps += 1;
    await into.fill(text);
    await into.press('Enter');
  }

  /** Opens the palette, types the words, waits for the result and presses Enter. */
  async goTo(words: string, found: string): Promise<void> {
    this.steps += 2;
    await this.page.keyboard.press('Control+k');
    await this.page.getByRole('combobox').fill(words);
    await this.page.getByRole('option', { selected: true }).filter({ hasText: found }).waitFor();
    await this.page.keyboard.press('Enter');
  }

  /** Clicks inside the page that a live view shows. `size` is the size of the page in CSS pixels. */
  async clickInside(view: FrameLocator, x: number, y: number, size = { width: 1280, height: 720 }): Promise<void> {
    const canvas = view.locator('#canvas');
    const box = (await canvas.boundingBox()) ?? assert.fail('there is no picture');
    this.steps += 1;
    await canvas.click({ position: { x: (x * box.width) / size.width, y: (y * box.height) / size.height } });
  }
}

interface SignIn {
  readonly origin: string;
  readonly by: (page: Page) => Promise<unknown>;
}

const WITH_TOKEN: SignIn = { origin: server.url, by: page => page.goto(link) };

/** Signs in a person. Tokens cannot be used for approvals and hand-offs, whose pages redirect to this loopback name. */
const AS_PERSON: SignIn = {
  origin: server.url.replace('127.0.0.1', 'localhost'),
  by: async page => {
    await page.goto(`${AS_PERSON.origin}/console/`);
    await signInByHand(page, 'ada@example.com', PASSWORD);
  },
};

function task(name: string, stepsMax: number, work: (user: User) => Promise<void>, signIn = WITH_TOKEN): void {
  test(`a user can ${name}, in at most ${stepsMax} steps`, async t => {
    const watched = await openWatchedPage(DESKTOP, signIn.origin);
    try {
      await signIn.by(watched.page);
      await watched.page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
      await watched.page.goto(`${signIn.origin}/console/`);
      await watched.page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
      const user = new User(watched.page);
      await work(user);
      assert.ok(user.steps <= stepsMax, `${user.steps} steps`);
      t.diagnostic(`${user.steps} steps`);
      assert.deepEqual(watched.violations, []);
    } finally {
      await watched.close();
    }
  });
}

const browsers: Browser[] = [];
after(() => Promise.all(browsers.map(browser => browser.close().catch(() => {}))));

async function visit(session: CreatedSession, path: string) {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  browsers.push(browser);
  const page = browser.contexts()[0]?.pages()[0] ?? assert.fail('the session has no page');
  await page.goto(`${pages.a}${path}`);
  return page;
}

const waitForTitle = (session: CreatedSession, title: string): Promise<unknown> =>
  eventually(
    'the title of the session',
    async () => ((await server.read(session.id)) as Session).lastPage?.title === title,
  );

async function crashSessionYesterday(): Promise<string> {
  const session = await server.createSession({ userMetadata: { customer: 'harbour-42' } });
  const page = await visit(session, '/shop');
  await waitForTitle(session, 'Harbour Shop');
  await page.waitForTimeout(1_000);
  kill(boxProcessesOf(server, session.id).browser);
  await eventually('the session to end', async () => (await server.read(session.id)).status === 'ERROR');
  const back = `interval '1 day'`;
  await queryRows(server, 'alter table sessions disable trigger sessions_guard');
  await queryRows(
    server,
    `update sessions set created_at = created_at - ${back}, ended_at = ended_at - ${back} where id = $1`,
    [session.id],
  );
  await queryRows(server, 'alter table sessions enable trigger sessions_guard');
  return session.id;
}

const crashedSessionId = await crashSessionYesterday();

task('find the session of customer 42 that failed yesterday, and the reason', 2, async user => {
  await user.goTo('harbour-42 crashed', 'Harbour Shop');
  const why = user.page.getByRole('region', { name: 'Why the session ended' });
  await why.getByText('The browser crashed').waitFor();
  assert.match(user.page.url(), new RegExp(crashedSessionId));
});

task('copy a link to the second of the failure', 3, async user => {
  await user.goTo('harbour-42 crashed', 'Harbour Shop');
  await user.click(user.page.getByRole('button', { name: 'Copy link at this time' }));
  const copiedLink = await user.page.evaluate<string>('navigator.clipboard.readText()');
  assert.ok(Number(new URL(copiedLink).searchParams.get('at')) > 0, copiedLink);
});

task('find the console messages of the page before the failure', 3, async user => {
  await user.goTo('harbour-42 crashed', 'Harbour Shop');
  await user.click(user.page.getByRole('tab', { name: 'Console' }));
  await user.page.getByText('the card was refused').waitFor();
});

task('revoke the key named nightly', 3, async user => {
  const { page } = user;
  const token = await createOwnerToken(server);
  const path = `/v1/applications/${server.applicationId}/agent-keys`;
  const issueResponse = await server.api<{ id: string }>('POST', path, { key: token, body: { name: 'nightly' } });
  assert.equal(issueResponse.status, 201, issueResponse.text);
  await user.click(page.getByRole('link', { name: 'Agent keys' }));
  await user.click(page.getByRole('button', { name: 'Revoke nightly' }));
  await user.click(page.getByRole('dialog').getByRole('button', { name: 'Revoke' }));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const { body } = await server.api<{ status: string }>('GET', `${path}/${issueResponse.body.id}`, { key: token });
  assert.equal(body.status, 'revoked');
});

task('rotate the shop credential', 3, async user => {
  const { page } = user;
  const owner = await Owner.open(server);
  const body = { type: 'api_key', value: { key: 'key-of-the-shop' }, hosts: ['api.shop.example'] };
  assert.equal((await owner.writeCredential('shop-api', body)).status, 201);
  await user.click(page.getByRole('link', { name: 'Credentials' }));
  await user.click(page.getByRole('button', { name: 'Rotate shop-api' }));
  await user.type(page.getByRole('dialog').getByLabel('Key'), 'another-key-of-the-shop');
  await page.getByText('Version 2, written').waitFor();
});

task('publish an operation that reads from an API, and see the call of an agent', 7, async user => {
  const { page } = user;
  const { key } = await issueAgentKey(server, { name: 'shop agent' });
  await user.click(page.getByRole('link', { name: 'Operations' }));
  await user.click(page.getByRole('link', { name: 'New operation' }));
  await user.click(page.getByRole('button', { name: /^Read from an API/ }));
  user.steps += 1;
  await page.getByLabel('Address', { exact: true }).fill(`${upstream.url}/orders/{orderId}`);
  await user.click(page.getByRole('button', { name: 'Save and publish' }));
  await page.getByText('Published r1').waitFor();
  const { body, text } = await invoke(server, key, 'orders.read', { orderId: 'A-1' });
  assert.equal(body.status, 'succeeded', text);
  await user.click(page.getByRole('link', { name: 'Show its invocations' }));
  await page.getByText('by shop agent').waitFor();
  await user.click(page.getByRole('link', { name: 'orders.read' }));
  await page.getByText('Verified in this browser').waitFor();
});

task('find the usage of the shop agent key this week', 2, async user => {
  const { page } = user;
  await user.click(page.getByRole('link', { name: 'Credit' }));
  await page.getByRole('button', { name: 'Last 7 days', pressed: true }).waitFor();
  await user.click(page.getByRole('button', { name: 'By agent key' }));
  await page.getByRole('row', { name: /^shop agent 1 / }).waitFor();
});

task(
  'find and approve the Action of an agent',
  2,
  async user => {
    const { page } = user;
    const owner = await Owner.open(server);
    await owner.publish(
      'orders.cancel',
      cancelOrderOperation(upstream, { approval: 'owner', title: 'Cancel an order' }),
    );
    const grants = [{ operationId: 'orders.cancel' }];
    const agent = new ActionAgent(server, (await issueAgentKey(server, { scopes: ACTION_SCOPES, grants })).key);
    const { jobId } = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-7' } });
    await user.click(page.getByRole('link', { name: 'Inbox 1 waiting for you' }));
    await user.click(page.getByRole('button', { name: 'Approve' }));
    await page.getByRole('heading', { name: 'Nothing is waiting for you' }).waitFor();
    assert.equal((await agent.read(jobId)).body.status, 'approved');
  },
  AS_PERSON,
);

task(
  'take over from an agent that needs a code, type the code, and give back control',
  6,
  async user => {
    const { page } = user;
    const { key } = await issueAgentKey(server, { scopes: [...AGENT_KEY_SCOPES] });
    const session = await server.createSession({ keepAlive: true }, key);
    const agent = await visit(session, '/sign-in-with');
    await agent.setContent(
      '<body style="margin:0"><input id=code style="position:absolute;left:20px;top:20px;width:300px;height:40px">',
    );
    const { id } = await requestHandoff(server, key, session.id, { reason: 'otp' });
    await user.click(page.getByRole('link', { name: 'Inbox 1 waiting for you' }));
    await user.click(page.getByRole('link', { name: 'Help the agent' }));
    await user.click(page.getByRole('button', { name: 'Take control' }));
    const view = page.frameLocator('iframe[title="The browser"]');
    await view.locator('#canvas').waitFor();
    await eventually('the live view to show a frame', () =>
      view.locator('#canvas').evaluate(canvas => Number(canvas.getAttribute('width')) > 0),
    );
    await user.clickInside(view, 100, 40);
    user.steps += 1;
    await page.keyboard.type('1234');
    await user.click(page.getByRole('button', { name: 'Done' }));
    await page.getByRole('heading', { name: 'Thank you' }).waitFor();
    assert.equal(await agent.inputValue('#code'), '1234');
    assert.equal((await readHandoff(server, key, id)).status, 'completed');
    await server.release(session.id);
  },
  AS_PERSON,
);

task('take over, sign in through a popup, and give back control', 7, async user => {
  const session = await server.createSession({ keepAlive: true, userMetadata: { job: 'needs-a-human' } });
  const agent = await visit(session, '/sign-in-with');
  await waitForTitle(session, 'Sign in');
  await user.goTo('needs-a-human', 'Sign in');
  const view = user.page.frameLocator('iframe[title="Live view of the session"]');
  await user.click(view.getByRole('button', { name: 'Take control' }));
  await view.getByRole('button', { name: 'Give back' }).waitFor();
  await user.clickInside(view, 100, 60);
  const currentTab = view.locator('[aria-current="true"]');
  await currentTab.filter({ hasText: 'Provider' }).waitFor();
  const canvas = view.locator('#canvas');
  const readRatio = (): Promise<number> =>
    canvas.evaluate(it => Number(it.getAttribute('width')) / Number(it.getAttribute('height')));
  await eventually('the picture of the popup', async () => (await readRatio()) < 1.5);
  const size = { width: 500, height: 400 };
  await user.clickInside(view, 100, 60, size);
  await user.page.keyboard.type('anna');
  const popup = agent.context().pages().at(-1);
  await eventually('the name in the popup', async () => (await popup?.inputValue('#name')) === 'anna');
  await user.clickInside(view, 100, 160, size);
  await currentTab.filter({ hasText: 'Hello anna' }).waitFor();
  await user.click(view.getByRole('button', { name: 'Give back' }));
  await view.getByRole('button', { name: 'Take control' }).waitFor();
  assert.equal(await agent.title(), 'Hello anna');
  await server.release(session.id);
});

task('release all running sessions', 4, async user => {
  const { page } = user;
  const createdSessions = [
    await server.createSession({ keepAlive: true }),
    await server.createSession({ keepAlive: true }),
  ];
  await user.click(page.getByRole('link', { name: 'Sessions', exact: true }));
  await user.click(page.getByRole('checkbox', { name: 'Select the 2 running sessions in the list' }));
  await user.click(page.getByRole('region', { name: 'Selected sessions' }).getByRole('button', { name: 'Release' }));
  await user.click(page.getByRole('dialog').getByRole('button', { name: 'Release' }));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  for (const { id } of createdSessions) assert.equal((await server.read(id)).endReason, 'released');
});

task('save the file that a session downloaded', 4, async user => {
  const { page } = user;
  const session = await server.createSession({ keepAlive: true, userMetadata: { job: 'export-7' } });
  const agent = await visit(session, '/download-page');
  await agent.click('#get');
  await eventually('the download', async () => {
    const { body } = await server.api<{ downloads: readonly unknown[] }>(
      'GET',
      `/v1/browsers/downloads?sessionId=${session.id}`,
    );
    return JSON.stringify(body).includes(FILE_NAME);
  });
  await waitForTitle(session, 'Download');
  await user.goTo('export-7', 'Download');
  await user.click(page.getByRole('tab', { name: 'Files' }));
  const whenDownloaded = page.waitForEvent('download');
  await user.click(page.getByRole('link', { name: `Save ${FILE_NAME}` }));
  assert.equal(readFileSync((await (await whenDownloaded).path()) ?? '', 'utf8'), FILE_TEXT);
  await server.release(session.id);
});

task('create a session by hand, and see its page', 2, async user => {
  const { page } = user;
  await user.click(page.getByRole('link', { name: 'New session' }).first());
  await user.click(page.getByRole('button', { name: 'Create' }));
  await page
    .frameLocator('iframe[title="Live view of the session"]')
    .getByRole('button', { name: 'Take control' })
    .waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  await server.release(id);
});

task('see which requests failed, and send the HAR file to a colleague', 5, async user => {
  const { page } = user;
  await user.goTo('harbour-42 crashed', 'Harbour Shop');
  await user.click(page.getByRole('tab', { name: 'Network' }));
  await user.choose(page.getByLabel('Status'), 'Failed or 4xx, 5xx');
  await page.getByRole('button', { name: /404 GET.*favicon/ }).waitFor();
  const whenDownloaded = page.waitForEvent('download');
  await user.click(page.getByRole('button', { name: 'HAR file' }));
  assert.equal((await whenDownloaded).suggestedFilename(), `${crashedSessionId}.har`);
});

task('see who released a session, and when', 3, async user => {
  const session = await server.createSession({ userMetadata: { job: 'who-did-it' } });
  await server.release(session.id);
  await user.goTo('who-did-it', session.id.slice(-6));
  await user.click(user.page.getByRole('tab', { name: 'Events' }));
  await user.page.getByRole('list', { name: 'Events' }).getByText('Release requested').waitFor();
});

task('find the usage of application B this week', 1, async user => {
  const token = await createOwnerToken(server);
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'B' },
  });
  await user.page.reload();
  await user.choose(user.page.getByLabel('Application', { exact: true }), applicationResponse.body.id);
  await user.page.getByRole('button', { name: 'Last 7 days', pressed: true }).waitFor();
  await user.page.getByText('No sessions in this period').waitFor();
});
