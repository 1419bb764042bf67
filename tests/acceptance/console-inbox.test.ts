// The inbox: items that wait for a person are counted, reported by e-mail to the people who may decide or claim them,
// and handled in the console.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Action } from '../../contract/actions.ts';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Inbox, Notifications } from '../../contract/inbox.ts';
import { ActionAgent, decide } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  PHONE,
  PHONE_DARK,
  signInByHand,
  visit,
  type WatchedPage,
} from '../harness/console.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { claimHandoff, handoffsPath, requestHandoff, sendWithLease } from '../harness/handoffs.ts';
import { walkByKeyboard } from '../harness/keyboard.ts';
import { liftLimits } from '../harness/limits.ts';
import { joinApplication, stepUp, verifyEmail } from '../harness/members.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { queryRows, registerOtherPerson } from '../harness/other-person.ts';
import { openPages } from '../harness/pages.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

await ensureConsoleBuilt();
const upstream = await openUpstream();
upstream.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
const pages = await openPages({ '/code': '<!doctype html><title>Code</title><input id="code" aria-label="Code">' });
const server = await startServer({
  ...{ clock: 'test', pages },
  env: { ...upstream.settings, BERTH_WARM: '0', BERTH_REGISTRATION: 'open' },
});
await liftLimits(server);
const publisher = await Owner.open(server);
await publisher.publish('orders.cancel', {
  ...cancelOrderOperation(upstream, { effect: 'irreversible', approval: 'member' }),
  display: { summary: 'Cancel order {{input.orderId}}', fields: [{ label: 'Order', value: '/orderId' }] },
});
await publisher.publish(
  'orders.refund',
  cancelOrderOperation(upstream, { approval: 'owner', title: 'Refund an order' }),
);
const grants = ['orders.cancel', 'orders.refund'].map(operationId => ({ operationId }));
const { key } = await issueAgentKey(server, { name: 'shop agent', scopes: [...AGENT_KEY_SCOPES], grants });
const agent = new ActionAgent(server, key);
const MINUTE_MS = 60_000;
let owner: Person;
let admin: Person;
let developer: Person;
let viewer: Person;

before(async () => {
  owner = await Person.setUpOwner(server);
  await verifyEmail(server, owner, 'ada@example.com');
  admin = (await joinApplication(server, owner, 'admin@example.com', 'admin')).person;
  developer = (await joinApplication(server, owner, 'dev@example.com', 'developer')).person;
  viewer = (await joinApplication(server, owner, 'viewer@example.com', 'viewer')).person;
});

async function inboxOf(person: Person, query = ''): Promise<Inbox> {
  const response = await person.get<Inbox>(`/v1/account/inbox${query}`);
  assert.equal(response.status, 200, response.text);
  return response.body;
}

/** Returns the number of approvals and the number of hand-offs in the inbox for the first application. */
async function countsOf(person: Person): Promise<readonly [number, number]> {
  const own = (await inboxOf(person)).applications.find(({ applicationId }) => applicationId === server.applicationId);
  return [own?.approvals ?? 0, own?.handoffs ?? 0];
}

interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Returns the e-mails about approvals and hand-offs that wait for a person, oldest first. */
async function readMails(): Promise<readonly Mail[]> {
  const { stdout } = await server.operate('outbox', '--json');
  const all: readonly Mail[] = JSON.parse(stdout);
  return all.filter(({ text }) => text.includes('wait')).toReversed();
}

/**
 * Advances the clock by `ms`. Then advances it twice more so that due tasks run, because an advance does not wait for
 * tasks.
 */
async function pass(ms: number): Promise<void> {
  await server.advance(ms);
  await server.advance(6_000);
  await server.advance(6_000);
}

const waitForMailCount = (count: number) =>
  eventually(
    `${count} mails`,
    async () => {
      await server.advance(6_000);
      return (await readMails()).length;
    },
    length => length === count,
  );

const prepare = (operationId: string, orderId: string, more: object = {}): Promise<Action> =>
  agent.prepareSuccessfully(operationId, { input: { orderId }, reason: `The customer of ${orderId} asked.`, ...more });

test('the inbox counts the items that each role may decide or claim, and reports changes immediately', async () => {
  const session = await server.createSession({ keepAlive: true }, key);
  assert.deepEqual((await inboxOf(owner)).applications, []);
  const [cancel, refund] = [await prepare('orders.cancel', 'A-1'), await prepare('orders.refund', 'A-1')];
  const handoff = await requestHandoff(server, key, session.id);
  const counts = await Promise.all([owner, admin, developer, viewer].map(countsOf));
  assert.deepEqual(counts, [
    [2, 1],
    [1, 1],
    [0, 1],
    [0, 0],
  ]);
  const [inApplication] = (await inboxOf(owner)).applications;
  assert.equal(inApplication?.applicationName, 'Default');
  const stranger = await registerOtherPerson(server, 'eve@example.com');
  const strangerInbox = await stranger.send<Inbox>('GET', '/v1/account/inbox');
  assert.deepEqual(strangerInbox.body.applications, [], 'another application');

  const { state } = await inboxOf(developer);
  const changedInbox = inboxOf(developer, `?wait=50&since=${state}`);
  const claimedHandoff = await claimHandoff(server, admin, handoff.id);
  assert.deepEqual((await changedInbox).applications, [], 'nothing is waiting while a person has the hand-off');
  assert.equal((await sendWithLease(server, claimedHandoff, 'cancel')).status, 200);
  assert.deepEqual(await countsOf(developer), [0, 1], 'the hand-off is waiting again');
  assert.equal((await owner.post(handoffsPath(server, `/${handoff.id}/cancel`), {})).status, 200);
  assert.equal((await decide(server, owner, refund, { decision: 'refuse' })).status, 200);
  await agent.cancel(cancel.jobId);
  assert.deepEqual((await inboxOf(owner)).applications, []);
  await server.release(session.id);
});

test('members who may decide or claim an item get an e-mail without any text from the agent', async () => {
  await pass(10 * MINUTE_MS);
  const mailCountBefore = (await readMails()).length;
  const session = await server.createSession({ keepAlive: true, timeout: 3_600 }, key);
  const refund = await prepare('orders.refund', 'A-2');
  const handoff = await requestHandoff(server, key, session.id, { reason: 'otp', instructions: 'Type PIN 1234.' });
  const decidedAction = await prepare('orders.cancel', 'A-2');
  assert.equal((await decide(server, admin, decidedAction, { decision: 'refuse' })).status, 200);
  await waitForMailCount(mailCountBefore + 3);
  const sentMails = (await readMails()).slice(mailCountBefore);
  assert.deepEqual(sentMails.map(({ to, subject }) => [to, subject]).toSorted(), [
    ['ada@example.com', '2 requests from agents are waiting for you'],
    ['admin@example.com', 'Take control: a page asks for a code (Default)'],
    ['dev@example.com', 'Take control: a page asks for a code (Default)'],
  ]);
  const text = sentMails.map(mail => mail.text).join('\n');
  assert.ok(text.includes(`/approve/${refund.jobId}`) && text.includes('Approve: Refund an order'), text);
  assert.ok(text.includes(`/handoffs/${handoff.id}?app=${server.applicationId}`), text);
  assert.doesNotMatch(text, /A-2|PIN|customer|orders\.cancel/);
  // The hand-off expires, and the e-mails that report only this hand-off are withdrawn.
  await server.advance(10 * MINUTE_MS);
  await waitForMailCount(mailCountBefore + 1);
  await decide(server, owner, refund, { decision: 'refuse' });
  await waitForMailCount(mailCountBefore);
  await server.release(session.id);
});

test('one e-mail reports thirty items, and an item that is added soon afterwards is reported after a delay', async () => {
  await pass(10 * MINUTE_MS);
  const mailCountBefore = (await readMails()).length;
  const many: Action[] = [];
  for (let index = 0; index < 30; index += 1)
    many.push(await prepare('orders.refund', `M-${index}`, { expiresIn: 86_400 }));
  await pass(10_000);
  await waitForMailCount(mailCountBefore + 1);
  const [mail, ...others] = (await readMails()).slice(mailCountBefore);
  assert.deepEqual(
    [mail?.to, mail?.subject, others.length],
    ['ada@example.com', '30 requests from agents are waiting for you', 0],
  );
  assert.equal(mail?.text.match(/\/approve\//g)?.length, 10);
  assert.match(mail?.text ?? '', /And 20 more\./);
  const lateAction = await prepare('orders.refund', 'M-late', { expiresIn: 86_400 });
  await pass(MINUTE_MS);
  assert.equal((await readMails()).length, mailCountBefore + 1);
  await pass(5 * MINUTE_MS);
  await waitForMailCount(mailCountBefore + 2);
  const [, second] = (await readMails()).slice(mailCountBefore);
  assert.equal(second?.subject, 'Approve: Refund an order (Default)');
  assert.ok(second.text.includes(lateAction.jobId));
  for (const { jobId } of [...many, lateAction]) await agent.cancel(jobId);
});

test('a person can turn off e-mails for all applications or for one application', async () => {
  const path = '/v1/account/notifications';
  const initialResponse = await admin.get<Notifications>(path);
  assert.deepEqual(initialResponse.body, { mails: true, mutedApplications: [], email: 'admin@example.com' });
  const foreignResponse = await admin.send<ErrorBody>('PATCH', path, {
    mutedApplications: ['01890000-0000-7000-8000-000000000000'],
  });
  assert.deepEqual([foreignResponse.status, foreignResponse.body.code], [400, 'invalid_request']);
  const muteResponse = await admin.send<Notifications>('PATCH', path, { mutedApplications: [server.applicationId] });
  assert.deepEqual(
    [muteResponse.status, muteResponse.body.mutedApplications],
    [200, [server.applicationId]],
    muteResponse.text,
  );
  assert.equal((await owner.send('PATCH', path, { mails: false })).status, 200);
  await pass(10 * MINUTE_MS);
  const mailCountBefore = (await readMails()).length;
  const mutedAction = await prepare('orders.cancel', 'A-3', { expiresIn: 86_400 });
  await pass(10_000);
  assert.equal((await readMails()).length, mailCountBefore);
  await admin.send('PATCH', path, { mutedApplications: [] });
  await waitForMailCount(mailCountBefore + 1);
  assert.deepEqual(
    (await readMails()).slice(mailCountBefore).map(({ to }) => to),
    ['admin@example.com'],
  );
  assert.equal((await owner.send('PATCH', path, { mails: true })).status, 200);
  await stepUp(admin);
  assert.equal((await decide(server, admin, mutedAction)).status, 200);
  // Nobody gets an e-mail about the decided Action, and the unsent e-mail is withdrawn.
  await pass(10_000);
  await waitForMailCount(mailCountBefore);
});

test('an unsent e-mail is withdrawn when its recipient mutes the application or is removed from the application', async () => {
  await pass(10 * MINUTE_MS);
  await stepUp(owner);
  const { person, accountId } = await joinApplication(server, owner, 'leaver@example.com', 'admin');
  const action = await prepare('orders.cancel', 'L-1', { expiresIn: 86_400 });
  const countMailsTo = async (email: string) =>
    (await readMails()).filter(({ to, text }) => to === email && text.includes(action.jobId)).length;
  const countMailsOfBoth = async (): Promise<string> => {
    await pass(10_000);
    return `${await countMailsTo('leaver@example.com')} and ${await countMailsTo('ada@example.com')}`;
  };
  await eventually('one message for each person', countMailsOfBoth, mailsOfEach => mailsOfEach === '1 and 1');
  const applicationResponse = await person.post<{ id: string }>('/v1/applications', { name: 'Own' });
  assert.equal(applicationResponse.status, 201, applicationResponse.text);
  await queryRows(
    server,
    'insert into told_items select account_id, $2::uuid, $2::uuid, mail_id from told_items where account_id = $1',
    [accountId, applicationResponse.body.id],
  );
  const readToldItems = () => queryRows(server, 'select from told_items where account_id = $1', [accountId]);
  assert.equal((await readToldItems()).length, 2);
  const removalResponse = await owner.send('DELETE', `/v1/applications/${server.applicationId}/members/${accountId}`);
  assert.equal(removalResponse.status, 204, removalResponse.text);
  assert.deepEqual(
    [await countMailsTo('leaver@example.com'), (await readToldItems()).length],
    [0, 0],
    'the notice is withdrawn',
  );
  const mute = (mutedApplications: readonly string[]) =>
    owner.send('PATCH', '/v1/account/notifications', { mutedApplications });
  assert.equal((await mute([server.applicationId])).status, 200);
  await pass(6_000);
  assert.equal(await countMailsTo('ada@example.com'), 0);
  assert.equal((await mute([])).status, 200);
  await agent.cancel(action.jobId);
});

/** The console redirects from 127.0.0.1 to this origin, because passkeys do not work with an IP address. */
const ORIGIN = server.url.replace('127.0.0.1', 'localhost');
const path = (rest = ''): string => `/console/a/${server.applicationId}${rest}`;

/** Signs in as the person with this e-mail address and opens a page of the console. */
function openConsole(
  look: DisplaySettings,
  email: string,
  at: string,
  work: (page: WatchedPage['page'], watched: WatchedPage) => Promise<void>,
  origin = ORIGIN,
): Promise<void> {
  return visit(origin, look, at, async (page, watched) => {
    await signInByHand(page, email, PASSWORD);
    await page
      .getByRole('navigation', { name: 'Main' })
      .or(page.getByRole('button', { name: 'Menu' }))
      .waitFor();
    await work(page, watched);
  });
}

const waitUntilInboxIsEmpty = (page: WatchedPage['page']) =>
  page.getByRole('heading', { name: 'Nothing is waiting for you' }).waitFor();

test('a new item updates the inbox count and shows a notice, and its approval requires the password again and produces a receipt', () =>
  openConsole(DESKTOP, 'ada@example.com', path(), async page => {
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    const inboxLink = page.getByRole('navigation', { name: 'Main' }).getByRole('link').nth(1);
    assert.equal(await inboxLink.innerText(), 'Inbox', 'the first link after the name of the service');
    const action = await prepare('orders.cancel', 'U-1');
    await page.getByRole('link', { name: 'Inbox 1 waiting for you' }).waitFor();
    await page.getByText('An agent is waiting for you.').waitFor();
    await page.getByRole('link', { name: 'Open inbox' }).click();
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Cancel order U-1' }) });
    await card.getByText('This cannot be undone.').waitFor();
    const agentSection = card.locator('section', { has: page.getByRole('heading', { name: 'The agent says' }) });
    assert.match(await agentSection.innerText(), /The customer of U-1 asked\./);
    await card.getByText('Asked by the agent key shop agent').waitFor();
    await server.advance(301_000);
    await card.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
    await waitUntilInboxIsEmpty(page);
    assert.equal((await agent.execute(action)).status, 200);
    await page.reload();
    const historyItem = page.getByRole('region', { name: 'History' }).getByRole('listitem').first();
    await historyItem.getByText('Approved and done').waitFor();
    await historyItem.getByText('by Ada').waitFor();
    await historyItem.getByRole('link', { name: 'Receipt' }).click();
    await page.getByText('Verified in this browser').waitFor();
  }));

test('a developer sees items that an admin or owner must decide, but no button to decide them', () =>
  openConsole(DESKTOP, 'dev@example.com', path('/inbox'), async page => {
    await waitUntilInboxIsEmpty(page);
    const action = await prepare('orders.cancel', 'U-2');
    await page.reload();
    const othersRegion = page.getByRole('region', { name: 'Waiting for others (1)' });
    await othersRegion.getByText('Waiting for an admin or owner').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0);
    await openConsole(DESKTOP, 'admin@example.com', path('/inbox'), async adminPage => {
      await adminPage.getByRole('heading', { name: 'Cancel order U-2' }).waitFor();
      await adminPage.getByRole('button', { name: 'Refuse' }).click();
      await waitUntilInboxIsEmpty(adminPage);
      const historyItem = adminPage.getByRole('region', { name: 'History' }).getByRole('listitem').first();
      await historyItem.getByText('Refused').waitFor();
      await historyItem.getByText('by admin').waitFor();
    });
    assert.equal((await agent.read(action.jobId)).body.status, 'refused');
  }));

test('a hand-off is opened from the inbox, completed in the live view, and listed with the person who completed it', async () => {
  const session = await server.createSession({ keepAlive: true }, key);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await browser.contexts()[0]?.pages()[0]?.goto(`${pages.url}/code`);
  await browser.close();
  const handoff = await requestHandoff(server, key, session.id, {
    instructions: 'Type the\u202e code.',
    reason: 'otp',
  });
  // This person signs in at `server.url` instead of localhost. The hand-off page must not redirect a person who is
  // signed in.
  const work = async (page: WatchedPage['page']): Promise<void> => {
    const requestedPaths: string[] = [];
    page.on('request', request => requestedPaths.push(new URL(request.url()).pathname));
    await page.reload();
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Enter a code' }) });
    await card.getByText('Type the code.').waitFor();
    await card.getByText(pages.url, { exact: true }).waitFor();
    const handoffRequestPaths = new Set(requestedPaths.filter(one => one.includes('/handoffs')));
    assert.deepEqual([...handoffRequestPaths], [handoffsPath(server)], 'the page reads hand-offs only from the list');
    await card.getByRole('link', { name: 'Help the agent' }).click();
    await page.getByRole('button', { name: 'Take control' }).click();
    await page.frameLocator('iframe[title="The browser"]').locator('#canvas').waitFor();
    const urlBefore = page.url();
    await page.goto(`${server.url}${path('/inbox')}`);
    await page.getByRole('heading', { name: 'You have control: enter a code' }).waitFor();
    await page.getByRole('link', { name: 'Continue' }).click();
    assert.equal(page.url(), urlBefore);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('link', { name: 'Back to the inbox' }).click();
    await waitUntilInboxIsEmpty(page);
    const historyItem = page.getByRole('region', { name: 'History' }).getByRole('listitem').first();
    await historyItem.getByText('Done').waitFor();
    await historyItem.getByText('by dev').waitFor();
  };
  await openConsole(DESKTOP, 'dev@example.com', path('/inbox'), work, server.url);
  assert.equal((await owner.get<{ status: string }>(handoffsPath(server, `/${handoff.id}`))).body.status, 'completed');
  await server.release(session.id);
});

test('a payment hand-off for an end user is not counted in the inbox of members, and can be claimed only after a recent sign-in', async () => {
  const lab = await ConsumerFixture.open(server, owner);
  const { consumer, accessToken } = await lab.signIn('kim@example.com');
  const session = await server.createSession({ keepAlive: true, timeout: 3_600 }, key);
  const claimableBy = { endUser: { providerId: consumer.providerId, subject: consumer.subject } };
  const countsBefore = await countsOf(owner);
  const { id } = await requestHandoff(server, key, session.id, { claimableBy, reason: 'payment', ttlSeconds: 3_600 });
  assert.deepEqual(await countsOf(owner), countsBefore);
  await openConsole(DESKTOP, 'dev@example.com', path('/inbox'), async page => {
    const othersRegion = page.getByRole('region', { name: /Waiting for others/ });
    await othersRegion.getByText('Waiting for an end user').waitFor();
  });
  await server.advance(301_000);
  const claim = () => lab.send<ErrorBody>('handoffs.claim', { id }, accessToken);
  const claimRefusal = await claim();
  assert.deepEqual(
    [claimRefusal.status, claimRefusal.body.code],
    [401, 'insufficient_user_authentication'],
    claimRefusal.text,
  );
  const freshTokens = await lab.signIn('kim@example.com');
  const claimResponse = await lab.send('handoffs.claim', { id }, freshTokens.accessToken);
  assert.equal(claimResponse.status, 200, claimResponse.text);
  assert.equal((await claim()).status, 401);
  await server.release(session.id);
});

test('e-mails can be turned off on the account page', () =>
  openConsole(DESKTOP, 'admin@example.com', '/console/account', async (page, watched) => {
    const box = page.getByRole('checkbox', { name: 'E-mail me when an agent is waiting for me' });
    await box.click();
    await eventually(
      'the setting to be saved',
      async () => (await admin.get<Notifications>('/v1/account/notifications')).body.mails,
      mails => !mails,
    );
    await watched.assertAccessible();
    await box.click();
    await eventually(
      'the setting to be saved',
      async () => (await admin.get<Notifications>('/v1/account/notifications')).body.mails,
      mails => mails,
    );
  }));

test('the inbox has no accessibility findings or overflow at three widths and in both themes, and works with the keyboard', async () => {
  const session = await server.createSession({ keepAlive: true }, key);
  await requestHandoff(server, key, session.id, { reason: 'login', ttlSeconds: 3_600 });
  for (const [operation, order] of [
    ['orders.cancel', 'A-1007'],
    ['orders.refund', 'A-1008'],
  ] as const)
    await prepare(operation, order);
  const narrowScreen: DisplaySettings = { ...DESKTOP, width: 1024 };
  for (const look of [
    DESKTOP,
    DESKTOP_DARK,
    narrowScreen,
    { ...narrowScreen, colours: 'dark' },
    PHONE,
    PHONE_DARK,
  ] as const)
    for (const email of ['ada@example.com', 'dev@example.com'])
      await openConsole(look, email, path('/inbox'), async (page, watched) => {
        await page.getByText('The agent says').first().waitFor();
        await eventually(
          'the page to be loaded',
          () => page.getByText('Loading').count(),
          count => count === 0,
        );
        await watched.assertAccessible();
        if (look !== DESKTOP) return;
        // The name of the navigation link contains the count.
        await page.getByRole('link', { name: /^Inbox \d+ waiting for you$/ }).waitFor();
        assert.deepEqual(await walkByKeyboard(page), { unreachable: [], unmarked: [] });
      });
  await server.release(session.id);
});
