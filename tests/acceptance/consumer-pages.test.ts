// A consumer on a phone: signs in on a page of Berth with a code by e-mail, adds a passkey of a virtual authenticator,
// and signs in with the passkey alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DisplaySettings, ensureConsoleBuilt, PHONE_DARK, visit } from '../harness/console.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

/** A screen with the width of the narrowest phones. */
const SMALL_SCREEN: DisplaySettings = { width: 360, height: 740, colours: 'light' };

await ensureConsoleBuilt();
const server = await startServer();
const base = server.url.replace('127.0.0.1', 'localhost');
const lab = await ConsumerFixture.open(server, await Person.setUpOwner(server));
const home = `/consumer/${lab.appId}/account`;

test('a consumer signs in with a code, adds a passkey, and then signs in with the passkey alone', async () => {
  await lab.configure({ colour: '#7a1f5c' });
  await visit(base, SMALL_SCREEN, home, async (page, watched) => {
    await watched.addAuthenticator();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.equal(await page.locator('#brand').innerText(), 'Default');
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/consumer/signin/**');
    await page.getByLabel('E-mail address').fill('kim@example.com');
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Send me a code' }).click();
    await page.getByText('a six-digit code is on its way').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('Code').fill(await lab.codeMailedTo('kim@example.com'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signed in as kim@example.com').waitFor();
    assert.ok(!page.url().includes('code='), 'the code stays in the address');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('button', { name: 'Remove the passkey' }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('heading', { name: 'Nothing is waiting for you' }).waitFor();
    await watched.assertAccessible();
    for (const tab of ['Receipts', 'Memory', 'Account']) {
      await page.getByRole('link', { name: tab }).click();
      await page.getByRole('heading', { name: tab, exact: true }).waitFor();
      await watched.assertAccessible();
    }
    await page.getByText('Signed in as kim@example.com').waitFor();
    await page.reload();
    await page.getByText('Signed in as kim@example.com').waitFor();
  });
});

test('a consumer sets a password with a code, sees an error for a wrong password, and signs in with the correct password', async () => {
  await visit(base, PHONE_DARK, home, async (page, watched) => {
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'New here, or forgot your password?' }).click();
    await page.getByLabel('E-mail address').fill('lee@example.com');
    await page.getByLabel('New password').fill('a long enough password');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('a six-digit code is on its way').waitFor();
    await page.getByLabel('Code').fill(await lab.codeMailedTo('lee@example.com'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signed in as lee@example.com').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Use a password instead' }).click();
    await page.getByLabel('E-mail address').fill('lee@example.com');
    await page.getByLabel('Password').fill('not the password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('is wrong').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('Password').fill('a long enough password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Nothing is waiting for you' }).waitFor();
  });
});

test('the page for an unknown sign-in states that the sign-in has expired', async () => {
  await visit(
    base,
    SMALL_SCREEN,
    `/consumer/signin/${lab.appId}/01a1fa50-5319-7450-a6b3-c787ada50631`,
    async (page, watched) => {
      await page.getByRole('alert').getByText('has expired').waitFor();
      await watched.assertAccessible();
    },
  );
});
