// Accounts in the console, in a real browser: the link of the first start, a passkey of a virtual authenticator, an
// authenticator app, the account page, and signing in and out. The page is at localhost, because passkeys need a host
// name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret as Seed, TOTP } from 'otpauth';
import type { Page } from 'playwright-core';
import {
  DESKTOP,
  DESKTOP_DARK,
  ensureConsoleBuilt,
  PHONE,
  PHONE_DARK,
  signInByHand,
  visit,
} from '../harness/console.ts';
import { createSetUpToken, PASSWORD, Person, readMailedCode } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

await ensureConsoleBuilt();
const server = await startServer();
const base = server.url.replace('127.0.0.1', 'localhost');
const EMAIL = 'ada@example.com';
const TABLET = { width: 1024, height: 800, colours: 'light' } as const;

const signIn = (page: Page, password = PASSWORD): Promise<void> => signInByHand(page, EMAIL, password);

test('a person creates an account with the setup link, adds a passkey, and signs in with the passkey alone', async () => {
  await visit(base, DESKTOP, `/signin#setup=${await createSetUpToken(server)}`, async (page, watched) => {
    await watched.addAuthenticator();
    await page.getByRole('heading', { name: 'Set up your account' }).waitFor();
    assert.ok(!page.url().includes('setup='), 'the secret stays in the address');
    await watched.assertAccessible();
    await page.getByLabel('Your name').fill('Ada');
    await page.getByLabel('E-mail address').fill(EMAIL);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('heading', { name: 'Add a passkey' }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();

    await page.getByRole('link', { name: 'Account', exact: true }).click();
    await page.getByText('First passkey').waitFor();
    await watched.assertAccessible();
    await page.getByRole('navigation').getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.getByRole('heading', { name: 'Account' }).waitFor();

    // A sensitive action requires the passkey again if the last proof is too old. The proof is recent at this point.
    await page.getByRole('button', { name: 'Remove First passkey' }).click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByText('No passkey yet').waitFor();
  });
});

test('a person signs in with a password, sees an error for a wrong password, and stays signed in after a reload', async () => {
  await visit(base, PHONE, '/console/', async (page, watched) => {
    await signIn(page, 'not the password');
    await page.getByRole('alert').getByText('is wrong').waitFor();
    await watched.assertAccessible();
    await signIn(page);
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
  });
});

test('an e-mailed code signs the person in and verifies the address', async () => {
  await visit(base, DESKTOP_DARK, '/signin?next=/console/account', async (page, watched) => {
    await page.getByLabel('E-mail address').fill(EMAIL);
    await page.getByRole('button', { name: 'Send me a code by e-mail' }).click();
    await page.getByText('a code was sent there').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('Code').fill(await readMailedCode(server, EMAIL));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Verified', { exact: true }).waitFor();
  });
});

test('a person adds an authenticator app, and signs in with a recovery code instead of the app', async () => {
  await visit(base, TABLET, '/console/account', async (page, watched) => {
    await signIn(page);
    await page.getByRole('button', { name: 'Add an authenticator app' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('img', { name: 'QR code of the seed' }).waitFor();
    await watched.assertAccessible();
    const seed = (await dialog.locator('.font-mono').innerText()).replaceAll(/\s/g, '');
    const app = new TOTP({ secret: Seed.fromBase32(seed) });
    await dialog.getByLabel('Code').fill(app.generate());
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('heading', { name: 'Recovery codes' }).waitFor();
    const [recoveryCode = ''] = (await page.getByRole('dialog').locator('pre, code').first().innerText()).split('\n');
    await page.getByLabel('I have stored it').check();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('10 recovery codes left').waitFor();
    await page.getByRole('navigation').getByRole('button', { name: 'Sign out' }).click();

    await signIn(page);
    await page.getByText('your authenticator app shows').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Use a recovery code' }).click();
    await page.getByLabel('Recovery code').fill(recoveryCode);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('9 recovery codes left').waitFor();
    await page.getByRole('button', { name: 'Stop using it' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop using it' }).click();
    await page.getByText('Not used', { exact: true }).waitFor();
  });
});

test('a change that requires a recent proof of identity is made after the person confirms their identity in a dialog', async () => {
  const person = new Person(server);
  await person.signIn(EMAIL);
  await visit(base, PHONE_DARK, '/console/account', async (page, watched) => {
    await signIn(page);
    await watched.addAuthenticator();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByLabel('Name').fill('Phone');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('Phone', { exact: true }).waitFor();
    await watched.assertAccessible();
    // Signs in again with the password alone, which is a weaker proof than the passkey that was just added.
    await page.evaluate(() => fetch('/v1/account/sign-out', { method: 'POST' }));
    await page.reload();
    await signIn(page);
    await page.getByRole('button', { name: 'Remove Phone' }).click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Confirm', exact: true }).click();
    await page.getByText('No passkey yet').waitFor();
  });
});

test('the sign-in page redirects only to pages of this service', async () => {
  for (const next of ['https://evil.example/', '//evil.example', '/console/../evil', 'javascript:alert(1)'])
    await visit(base, DESKTOP, `/signin?next=${encodeURIComponent(next)}`, async page => {
      await signIn(page);
      await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
      assert.equal(new URL(page.url()).origin, base);
    });
});
