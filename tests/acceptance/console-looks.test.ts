import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  findConsoleLink,
  PHONE,
  PHONE_DARK,
  visitSessions,
} from '../harness/console.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { walkByKeyboard } from '../harness/keyboard.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

await ensureConsoleBuilt();
const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE } });
const link = findConsoleLink(server);
const session = await server.createSession({ keepAlive: true, userMetadata: { run: 'r-1842' } });

const { key } = await issueAgentKey(server);
const failingInput = { url: 'http://127.0.0.1:1/' };
const { body: invocation } = await invoke(server, key, 'browser.content', failingInput);
assert.equal(invocation.status, 'failed');

const owner = await Owner.open(server);
const CREDENTIAL = { type: 'api_key', value: { key: 'key-of-the-shop' }, hosts: ['api.shop.example'] };
assert.equal((await owner.writeCredential('shop-api', CREDENTIAL)).status, 201);
const orderOperation = cancelOrderOperation(
  { url: 'https://api.shop.example' },
  { binding: { auth: { credentialId: 'shop-api', as: 'bearer' } } },
);
await owner.publish('orders.cancel', orderOperation);
assert.equal(
  (
    await owner.configure(
      'orders.cancel',
      { ...orderOperation, effect: 'irreversible', acknowledgeUnattended: true },
      '*',
    )
  ).status,
  200,
);

const path = (rest: string): string => `/console/a/${server.applicationId}${rest}`;

type PageAddress = readonly [address: string, title: string];

const MAIN_PAGES: readonly PageAddress[] = [
  [path(''), 'Overview'],
  [path('/sessions'), 'Sessions'],
  [path(`/sessions/${session.id}`), 'Session'],
];
const OTHER_PAGES: readonly PageAddress[] = [
  [path('/sessions/new'), 'New session'],
  [path(`/sessions/${session.id}?tab=events`), 'Session'],
  [path(`/sessions/${session.id}?tab=console`), 'Session'],
  [path(`/sessions/${session.id}?tab=network`), 'Session'],
  [path(`/sessions/${session.id}?tab=files`), 'Session'],
  [path(`/sessions/${session.id}?tab=replay`), 'Session'],
  [path(`/sessions/${session.id}?tab=connect`), 'Session'],
  [path('/inbox'), 'Inbox'],
  [path('/operations'), 'Operations'],
  [path('/operations/new'), 'New operation'],
  [path('/operations/orders.cancel'), 'orders.cancel'],
  [path('/operations/browser.steps'), 'browser.steps'],
  [path('/invocations'), 'Invocations'],
  [path(`/invocations/${invocation.id}`), 'Invocation'],
  [path('/playground'), 'Playground'],
  [path('/contexts'), 'Contexts'],
  [path('/extensions'), 'Extensions'],
  [path('/certificates'), 'Certificates'],
  [path('/keys'), 'Agent keys'],
  [path('/credentials'), 'Credentials'],
  [path('/webhooks'), 'Webhooks'],
  [path('/credit'), 'Credit'],
  [path('/credit?by=key'), 'Credit'],
  [path('/limits'), 'Limits and usage'],
  [path('/members'), 'Members'],
  [path('/audit'), 'Audit log'],
  ['/console/outbox', 'Outbox'],
  ['/console/account', 'Account'],
  ['/console/applications', 'Applications'],
  ['/console/tokens', 'Access tokens'],
  ['/console/hosts', 'Hosts'],
  ['/console/host', 'This host'],
];

const NARROW_SCREEN: DisplaySettings = { ...DESKTOP, width: 1024 };
const NARROW_SCREEN_DARK: DisplaySettings = { ...NARROW_SCREEN, colours: 'dark' };
/**
 * Maps each device to pairs of displays. Each page is loaded once per device, and then checked with the displays in
 * this order. The displays of a pair have the same window size and different themes.
 */
const DEVICES: ReadonlyArray<readonly [string, ReadonlyArray<readonly [DisplaySettings, DisplaySettings]>]> = [
  [
    'at a desk',
    [
      [DESKTOP, DESKTOP_DARK],
      [NARROW_SCREEN_DARK, NARROW_SCREEN],
    ],
  ],
  ['on a phone', [[PHONE, PHONE_DARK]]],
];

for (const [name, windows] of DEVICES)
  test(`pages have no accessibility findings and no overflow in either theme: ${name}`, () =>
    visitSessions(server, link, windows[0]?.[0] ?? DESKTOP, async watched => {
      const { page } = watched;
      for (const [address, title] of [...MAIN_PAGES, ...OTHER_PAGES]) {
        await page.goto(`${server.url}${address}`);
        await page.getByRole('heading', { name: title, exact: true }).waitFor();
        const countLoading = (): Promise<number> => page.getByText('Loading').count();
        await eventually('the page to be loaded', countLoading, count => count === 0);
        for (const [look, other] of windows) {
          await watched.setDisplay(look);
          const description = `${address} with ${look.width} pixels`;
          assert.deepEqual(await watched.runAxe(), [], `${description}, ${look.colours}`);
          assert.equal(await watched.overflows(), false, description);
          await watched.setDisplay(other);
          assert.deepEqual(await watched.runAxe('colours'), [], `${description}, ${other.colours}`);
          assert.equal(await watched.overflows(), false, description);
        }
      }
    }));

/** Waits until the page is loaded. Elements that appear during a walk by keyboard would change its order. */
async function settled(page: Page): Promise<void> {
  const countLoading = (): Promise<number> => page.getByText('Loading').count();
  await eventually('the page to be loaded', countLoading, count => count === 0);
  // The link appears once the console has determined that the person is the operator.
  await page.getByRole('link', { name: 'Outbox', exact: true }).waitFor();
}

test('the keyboard check of the tests detects an unreachable element and an element without a visible focus', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await settled(page);
    await page.evaluate(`(() => {
      const add = (name, style) => document.body.append(Object.assign(document.createElement(name), { textContent: 'x', style }));
      add('div', 'cursor: pointer');
      add('button', 'outline: none !important; box-shadow: none');
    })()`);
    const { unreachable, unmarked } = await walkByKeyboard(page);
    assert.deepEqual([unreachable.length, unmarked.length], [1, 1]);
  }));

test('every element that can be used with the mouse can be reached with the Tab key and has a visible focus', () =>
  visitSessions(server, link, DESKTOP, async watched => {
    const { page } = watched;
    for (const [address, title] of [...MAIN_PAGES, ...OTHER_PAGES]) {
      await page.goto(`${server.url}${address}`);
      await page.getByRole('heading', { name: title, exact: true }).waitFor();
      await settled(page);
      assert.deepEqual(await walkByKeyboard(page), { unreachable: [], unmarked: [] }, address);
    }
  }));

test('on a small screen, the menu button opens the navigation, which closes after a link is chosen', () =>
  visitSessions(server, link, PHONE, async watched => {
    const { page } = watched;
    await page.getByRole('button', { name: 'Menu' }).click();
    assert.deepEqual(await watched.runAxe(), []);
    await page.getByRole('dialog').getByRole('link', { name: 'Hosts' }).click();
    await page.getByRole('heading', { name: 'Hosts', exact: true }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }));

test('the chosen color theme is kept after a reload', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const readBackgroundColor = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const lightColor = await readBackgroundColor();
    const toggle = page.getByRole('button', { name: /^Colours/ });
    await toggle.click();
    assert.equal(await readBackgroundColor(), lightColor);
    await toggle.click();
    const darkColor = await readBackgroundColor();
    assert.notEqual(darkColor, lightColor);
    await page.reload();
    await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor();
    assert.equal(await readBackgroundColor(), darkColor);
  }));

for (const width of [800, 1024, 1200, 1300, 1440])
  test(`the columns of the session list do not overlap at ${width} pixels`, () =>
    visitSessions(server, link, { ...DESKTOP, width }, async ({ page }) => {
      await page.goto(`${server.url}${path('/sessions')}`);
      const cells = page.getByRole('list', { name: 'Sessions' }).locator('li').first().locator('> *');
      await cells.first().waitFor();
      const boxes = (await Promise.all((await cells.all()).map(cell => cell.boundingBox()))).filter(
        box => box !== null,
      );
      assert.ok(boxes.length >= 5);
      for (const [at, box] of boxes.entries()) {
        if (width >= 1024) assert.ok(box.width >= 60, `cell ${at} has ${box.width} pixels`);
        const next = boxes[at + 1];
        // In a narrow container a row takes two lines, so only cells on the same line are compared.
        if (next && next.y < box.y + box.height && next.x > box.x)
          assert.ok(box.x + box.width <= next.x, `cell ${at} reaches into the next`);
      }
    }));
