// Operations in the console, in a real browser: created from an example, corrected at the reported position, tried,
// published, changed, withdrawn and deleted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentKey } from '../../contract/agent-keys.ts';
import type { ConfiguredOperation } from '../../contract/configured-operations.ts';
import { Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  PHONE,
  signInByHand,
  visit,
} from '../harness/console.ts';
import { liftLimits } from '../harness/limits.ts';
import { joinApplication } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const OWNER_EMAIL = 'ada@example.com';
const DEVELOPER_EMAIL = 'dev@example.com';
const VIEWER_EMAIL = 'vic@example.com';

await ensureConsoleBuilt();
const upstream = await openUpstream();
upstream.respondTo('/orders', (_, response) => sendJson(response, 200, { state: 'shipped' }));
const server = await startServer({ env: upstream.settings });
const person = await Person.setUpOwner(server, OWNER_EMAIL);
await joinApplication(server, person, VIEWER_EMAIL, 'viewer');
await joinApplication(server, person, DEVELOPER_EMAIL, 'developer');
await liftLimits(server);
const owner = await Owner.open(server);
const operationsPath = `/console/a/${server.applicationId}/operations`;
const visitAs = (
  email: string,
  look: DisplaySettings,
  path: string,
  work: Parameters<typeof visit>[3],
): Promise<void> =>
  visit(server.url, look, `${operationsPath}${path}`, async (page, watched) => {
    await signInByHand(page, email, PASSWORD);
    await work(page, watched);
  });
const readOperation = async (id: string): Promise<ConfiguredOperation> => {
  const { status, body, text } = await owner.send<ConfiguredOperation>('GET', `operations/${id}`);
  assert.equal(status, 200, text);
  return body;
};

test('an operation can be created from an example, corrected after errors, published and called', () =>
  visitAs(DEVELOPER_EMAIL, DESKTOP, '', async (page, watched) => {
    await page.getByText('No operations of your own').waitFor();
    await page.getByRole('link', { name: 'browser.screenshot' }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('link', { name: 'New operation' }).click();
    await page.getByRole('button', { name: /^Read from an API/ }).click();
    await watched.assertAccessible();
    const address = page.getByLabel('Address', { exact: true });
    await address.fill(`${upstream.url}/orders/{order}`);
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByText('has the variable order, which inputSchema does not define', { exact: true }).waitFor();
    await page.locator('input:focus').and(address).waitFor();
    await watched.assertAccessible();
    await address.fill(`${upstream.url}/orders/{orderId}`);

    const schema = page.getByLabel('Schema of the input');
    const writtenSchema = await schema.inputValue();
    await schema.fill(writtenSchema.replace('"string"', 'string'));
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByRole('button', { name: /^Line \d+ is not valid JSON: expected a value/ }).click();
    assert.match(await page.evaluate<string>('getSelection().toString()'), /^string/);
    await schema.fill(writtenSchema.replace('"string"', '"strin"'));
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByRole('button', { name: /^Line \d+: properties\.orderId\.type/ }).waitFor();
    await watched.assertAccessible();
    await schema.fill(writtenSchema);

    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByRole('heading', { name: 'orders.read' }).waitFor();
    await page.getByText(/^Publish the operation first/).waitFor();
    assert.equal((await readOperation('orders.read')).status, 'draft');
    await page.getByRole('button', { name: 'Publish revision 1' }).click();
    await page.getByText('Published r1').waitFor();
    assert.match(await page.getByLabel('Input to try').inputValue(), /A-1007/);
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByText('Succeeded').waitFor();
    await page.getByLabel('the output', { exact: true }).getByText('"shipped"').waitFor();
    await watched.assertAccessible();
    assert.deepEqual(
      upstream.receivedRequests('/orders').map(({ url }) => url),
      ['/orders/A-1007'],
    );
    await page.getByRole('link', { name: 'Show the invocation' }).click();
    await page.getByText('Verified in this browser').waitFor();
  }));

test('the key for a trial call allows one call of the operation, and is revoked afterwards', async () => {
  const { body } = await owner.send<{ data: AgentKey[] }>('GET', 'agent-keys?limit=100');
  const used = body.data.filter(({ grants }) => grants.some(({ operationId }) => operationId === 'orders.read'));
  assert.deepEqual(
    used.map(({ status, grants, scopes }) => ({ status, grants, scopes })),
    [
      {
        status: 'revoked',
        grants: [{ operationId: 'orders.read', maxCallsPerDay: 1 }],
        scopes: ['operations:invoke'],
      },
    ],
  );
});

test('a trial call with invalid input shows the error and sends no request', () =>
  visitAs(OWNER_EMAIL, PHONE, '/orders.read', async (page, watched) => {
    await page.getByLabel('Input to try').fill('{"orderId": 7}');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page
      .getByRole('alert')
      .getByText(/orderId/)
      .waitFor();
    await page.getByLabel('Input to try').fill('{"orderId": }');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('button', { name: /^Line 1 is not JSON/ }).waitFor();
    await watched.assertAccessible();
    assert.equal(upstream.receivedRequests('/orders').length, 1);
  }));

test('a change is saved as a draft next to the published revision, and the differences are shown', async () => {
  const { key } = await issueAgentKey(server);
  await visitAs(OWNER_EMAIL, DESKTOP_DARK, '/orders.read', async (page, watched) => {
    assert.equal(await page.getByRole('button', { name: 'Save as draft' }).count(), 0);
    await page.getByLabel('Address', { exact: true }).fill(`${upstream.url}/orders/v2/{orderId}`);
    await page.getByLabel('Price of a call in credits').fill('0.25');
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByRole('heading', { name: 'Revision 2 differs from 1' }).waitFor();
    await page.getByText('price.microCredits').waitFor();
    await page.getByText('250000').waitFor();
    await page.getByText('draft r2').waitFor();
    await watched.assertAccessible();
    assert.equal((await invoke(server, key, 'orders.read', { orderId: 'A-2' })).body.operationRevision, 1);
    await page.getByRole('button', { name: 'Publish revision 2' }).click();
    await page.getByText('Published r2').waitFor();
  });
  const { body } = await invoke(server, key, 'orders.read', { orderId: 'A-2' });
  assert.deepEqual([body.operationRevision, body.status, body.error], [2, 'succeeded', undefined]);
  assert.equal(upstream.receivedRequests('/orders').at(-1)?.url, '/orders/v2/A-2');
});

test('the form refuses to save an operation that has changed since the form was loaded, shows the reason, and keeps the typed text', () =>
  visitAs(OWNER_EMAIL, DESKTOP, '/orders.read', async page => {
    await page.getByLabel('Title', { exact: true }).fill('Read the state of an order');
    const { id: _, kind, title, description, effect, inputSchema, binding } = await readOperation('orders.read');
    const body = { kind, title, effect, inputSchema, binding, description: `${description} Changed elsewhere.` };
    assert.equal((await owner.configure('orders.read', body, '*')).status, 200);
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByText('The resource has changed since you read it.').waitFor();
    assert.equal(await page.getByLabel('Title', { exact: true }).inputValue(), 'Read the state of an order');
  }));

test('errors in browser steps are shown with their line number', () =>
  visitAs(OWNER_EMAIL, PHONE, '/new', async (page, watched) => {
    await page.getByRole('button', { name: /^Fill in a form/ }).click();
    const steps = page.getByLabel('Steps');
    await steps.fill('[\n  {"do": "click", "selector": "#send"},\n  {"do": "fill", "selector": "#a"}\n]');
    await page.getByRole('button', { name: 'Save and publish' }).click();
    await page.getByRole('button', { name: /^Line 3: \[1\]/ }).waitFor();
    await watched.assertAccessible();
    await steps.fill('[{"do": "extract", "fields": {"title": {"selector": "h1"}}}]');
    await page.getByRole('button', { name: 'Save and publish' }).click();
    await page.getByRole('heading', { name: 'tickets.open' }).waitFor();
    await page.getByText('Published r1').waitFor();
  }));

test('a member with the viewer role can read an operation, but sees no buttons for changes', () =>
  visitAs(VIEWER_EMAIL, DESKTOP, '', async (page, watched) => {
    await page.getByRole('link', { name: 'orders.read' }).click();
    await page.getByText('This requires the developer role, because it is a real call.').waitFor();
    assert.equal(await page.getByLabel('Address', { exact: true }).isDisabled(), true);
    for (const name of [/^Save/, /^Publish/, /^Withdraw/, /^Delete/, /^Call it/])
      assert.equal(await page.getByRole('button', { name }).count(), 0, String(name));
    await watched.assertAccessible();
    await page.goto(`${server.url}${operationsPath}/new`);
    await page.getByText('You can view operations, but not create them').waitFor();
  }));

test('a developer can switch off a built-in operation, but cannot set its price', () =>
  visitAs(DEVELOPER_EMAIL, DESKTOP, '/browser.pdf', async (page, watched) => {
    await page.getByLabel('Price of a call in credits').fill('1');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This operation requires the role admin in the application.').waitFor();
    await page.getByLabel('Price of a call in credits').fill('0');
    await page.getByLabel('Agents may call it').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Switched off', { exact: true }).waitFor();
    await page.getByText('This operation is switched off.').waitFor();
    await watched.assertAccessible();
    assert.equal((await readOperation('browser.pdf')).enabled, false);
  }));

test('an operation can be withdrawn and then deleted', () =>
  visitAs(OWNER_EMAIL, DESKTOP, '/tickets.open', async page => {
    await page.getByRole('button', { name: 'Withdraw' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Withdraw' }).click();
    await page.getByText('Withdrawn', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Operations', exact: true }).waitFor();
    await page.getByRole('link', { name: 'orders.read' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'tickets.open' }).count(), 0);
  }));
