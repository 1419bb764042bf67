// Members in the console, in a real browser. An owner invites a person, who follows the link, creates an account,
// verifies the address and accepts. The owner then changes the role and removes the member. The audit log records each
// step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { DESKTOP, DESKTOP_DARK, ensureConsoleBuilt, PHONE, signInByHand, visit } from '../harness/console.ts';
import { PASSWORD, Person, readMailedCode } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

await ensureConsoleBuilt();
const server = await startServer();
const OWNER_EMAIL = 'ada@example.com';
const INVITED_EMAIL = 'bob@example.com';

const signIn = (page: Page, email: string): Promise<void> => signInByHand(page, email, PASSWORD);

test('an owner can invite a person, change the role of the new member and remove the member, and the audit log shows each step', async () => {
  await Person.setUpOwner(server, OWNER_EMAIL);
  let link = '';
  const membersPath = `/console/a/${server.applicationId}/members`;
  await visit(server.url, DESKTOP, membersPath, async (page, watched) => {
    await signIn(page, OWNER_EMAIL);
    await page.getByText('No invitations').waitFor();
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByLabel('E-mail address').fill(INVITED_EMAIL);
    await page.getByRole('dialog').getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('heading', { name: `Invitation for ${INVITED_EMAIL}` }).waitFor();
    link = await page.getByRole('dialog').locator('pre, code').first().innerText();
    await watched.assertAccessible();
  });
  assert.match(link, /\/console\/invitation#biv_/);

  await visit(server.url, PHONE, new URL(link).pathname + new URL(link).hash, async (page, watched) => {
    await page.getByRole('heading', { name: 'You are invited' }).waitFor();
    assert.ok(!page.url().includes('biv_'), 'the secret stays in the address');
    await watched.assertAccessible();
    await page.getByLabel('Your name').fill('Bob');
    await page.getByLabel('E-mail address').fill(INVITED_EMAIL);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('button', { name: 'Verify the e-mail address' }).click();
    await page.getByRole('button', { name: 'Send a code' }).click();
    await page.getByLabel('Code').fill(await readMailedCode(server, INVITED_EMAIL));
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByRole('button', { name: 'Accept the invitation' }).click();
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    assert.match(page.url(), new RegExp(server.applicationId));
    await page.goto(`${server.url}${membersPath}`);
    await page.getByText('Ada').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Invite' }).count(), 0);
    await watched.assertAccessible();
  });

  await visit(server.url, DESKTOP_DARK, membersPath, async (page, watched) => {
    await signIn(page, OWNER_EMAIL);
    await page.getByLabel('Role of Bob').selectOption('viewer');
    await page.getByText('accepted').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Remove Bob' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByLabel('Role of Bob').waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'Audit log' }).click();
    for (const action of ['invitation.created', 'invitation.accepted', 'member.role_changed', 'member.removed'])
      await page.getByRole('listitem').filter({ hasText: action }).first().waitFor();
    await page.getByLabel('Action').selectOption('member.removed');
    await page.getByRole('listitem').filter({ hasText: 'invitation.created' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Ada' }).first().click();
    await page.getByText('Only by Ada').waitFor();
    assert.match(page.url(), /action=member\.removed/);
    await page.reload();
    await page.getByText('Only by Ada').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'member.removed' }).waitFor();
    await page.getByLabel('Action').selectOption('agent_key.rotated');
    await page.getByText('No matching entries').waitFor();
    await watched.assertAccessible();
  });
});

test('only the operator can read unsent e-mails in the outbox, and copy the link from an e-mail', async () => {
  const outboxPath = '/console/outbox';
  for (const look of [DESKTOP_DARK, PHONE])
    await visit(server.url, look, outboxPath, async (page, watched) => {
      await signIn(page, OWNER_EMAIL);
      await page.getByText('No mail server is configured').waitFor();
      const mail = page.getByRole('listitem').filter({ hasText: INVITED_EMAIL }).filter({ hasText: 'Invitation to' });
      await mail.getByText('Show the text').click();
      await mail.getByText(/\/console\/invitation#biv_/).waitFor();
      await mail.getByRole('button', { name: `Copy the link for ${INVITED_EMAIL}` }).click();
      assert.match(await page.evaluate('navigator.clipboard.readText()'), /^http\S+\/console\/invitation#biv_\S+$/);
      await watched.assertAccessible();
    });
  await visit(server.url, DESKTOP, outboxPath, async page => {
    await signIn(page, INVITED_EMAIL);
    await page.getByText('Only the operator', { exact: false }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Outbox' }).count(), 0);
  });
});

test('past invitations show when and why each invitation ended, and older invitations are shown on request', async () => {
  const membersPath = `/console/a/${server.applicationId}/members`;
  await visit(server.url, DESKTOP, membersPath, async (page, watched) => {
    await page.route('**/invitations?*', async route => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', '1');
      await route.continue({ url: url.href });
    });
    await signIn(page, OWNER_EMAIL);
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByLabel('E-mail address').fill('cid@example.com');
    await page.getByRole('dialog').getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('heading', { name: 'Invitation for cid@example.com' }).waitFor();
    await page.getByRole('dialog').getByRole('checkbox').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    await page.getByRole('listitem').filter({ hasText: 'cid@example.com' }).getByText('Until').waitFor();
    await page.getByRole('button', { name: 'Show older invitations' }).click();
    const endedInvitation = page.getByRole('listitem').filter({ hasText: INVITED_EMAIL });
    await endedInvitation.getByText('Accepted').waitFor();
    await endedInvitation.locator('time[title$="UTC"]').waitFor();
    await watched.assertAccessible();
  });
});

test('the last owner cannot give up the owner role, and sees an error', async () => {
  await visit(server.url, DESKTOP, `/console/a/${server.applicationId}/members`, async page => {
    await signIn(page, OWNER_EMAIL);
    await page.getByLabel('Role of Ada').selectOption('viewer');
    await page.getByRole('alert').waitFor();
    await page.locator('select[aria-label="Role of Ada"]:enabled').waitFor();
    assert.equal(await page.getByLabel('Role of Ada').inputValue(), 'owner');
  });
});
