// Members can list the invocations of an application that were made with any of its agent keys. Tests filters, list
// pages and receipts. Whether results are visible depends on role and scope.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Invocation, InvocationPage } from '../../contract/invocations.ts';
import { TOKEN_SCOPES } from '../../contract/tokens.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { stepUp } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const upstream = await openUpstream();
const server = await startServer({ env: { ...upstream.settings, BERTH_REGISTRATION: 'open' } });
await liftLimits(server);
const token = await createOwnerToken(server);
const owner = await Owner.open(server);
const KEPT = { input: 'full', output: 'full', days: 3 };
await owner.publish('orders.read', cancelOrderOperation(upstream, { effect: 'read', retention: KEPT }));
await owner.publish('orders.other', cancelOrderOperation(upstream, { effect: 'read' }));
const one = await issueAgentKey(server);
const two = await issueAgentKey(server);
const made: Invocation[] = [];
for (const [key, operationId] of [
  [one.key, 'orders.read'],
  [two.key, 'orders.read'],
  [two.key, 'orders.other'],
] as const) {
  const { status, body, text } = await invoke(server, key, operationId, { orderId: `${made.length}` });
  assert.equal(status, 200, text);
  made.push(body);
}
const [first = assert.fail(), second = assert.fail(), third = assert.fail()] = made;

const path = (rest = ''): string => `/v1/applications/${server.applicationId}/invocations${rest}`;
const list = async (query = ''): Promise<InvocationPage> => {
  const { status, body, text } = await server.api<InvocationPage>('GET', path(query), { key: token });
  assert.equal(status, 200, text);
  return body;
};
const listIds = async (query: string): Promise<string[]> => (await list(query)).data.map(({ id }) => id);

test('the list of invocations covers all agent keys, newest first, and omits inputs, outputs and receipts', async () => {
  const { data } = await list();
  assert.deepEqual(
    data.map(({ id }) => id),
    [third.id, second.id, first.id],
  );
  for (const { input, output, receipt, endedAt } of data)
    assert.deepEqual([input, output, receipt, endedAt === undefined], [undefined, undefined, undefined, false]);
});

test('the invocations of an application can be filtered by operation, status, agent key and time', async () => {
  assert.deepEqual(await listIds('?operationId=orders.other'), [third.id]);
  assert.deepEqual(await listIds(`?keyId=${one.id}`), [first.id]);
  assert.deepEqual(await listIds(`?keyId=${two.id.toUpperCase()}&operationId=orders.read`), [second.id]);
  assert.deepEqual(await listIds('?status=ambiguous'), []);
  assert.deepEqual(await listIds('?status=succeeded'), [third.id, second.id, first.id]);
  assert.deepEqual(await listIds(`?after=${second.createdAt}`), [third.id, second.id]);
  assert.deepEqual(await listIds(`?before=${second.createdAt}`), [first.id]);
  const earliestDate = '0001-01-01T00:00:00.000Z';
  assert.deepEqual(
    [(await listIds(`?after=${earliestDate}`)).length, await listIds(`?before=${earliestDate}`)],
    [3, []],
  );
  for (const bound of ['createdAfter', 'createdBefore'])
    assert.equal((await server.api('GET', `/v1/browsers/sessions?${bound}=${earliestDate}`)).status, 200, bound);
});

test('the list of invocations of an application is paginated, and a cursor from the list of an agent key is refused', async () => {
  const page = await list('?limit=2');
  assert.deepEqual([page.data.length, typeof page.nextCursor], [2, 'string']);
  const rest = await list(`?limit=2&cursor=${page.nextCursor}`);
  assert.deepEqual([rest.data.map(({ id }) => id), rest.nextCursor], [[first.id], undefined]);
  const agentListPath = `/v1/agent/applications/${server.applicationId}/invocations?limit=1`;
  const agentListResponse = await server.api<InvocationPage>('GET', agentListPath, { key: two.key });
  const { status, body } = await server.api('GET', path(`?cursor=${agentListResponse.body.nextCursor}`), {
    key: token,
  });
  assert.deepEqual([status, body.code], [400, 'invalid_request']);
});

test('an invocation can be read with its stored input and output and a valid receipt', async () => {
  const { body } = await server.api<Invocation>('GET', path(`/${first.id}`), { key: token });
  assert.deepEqual([body.input, body.output, body.caller], [{ orderId: '0' }, first.output, { keyId: one.id }]);
  const keys = (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
  const { input, output, receipt = '' } = body;
  const claims = verifyReceipt(receipt, { keys, input, output, audience: server.applicationId });
  assert.equal(claims.sub, `invocation:${first.id}`);
  const thirdResponse = await server.api<Invocation>('GET', path(`/${third.id}`), { key: token });
  assert.equal(thirdResponse.body.input, undefined);
});

test('the viewer role and a token without applications:write give access to the receipt, but not to the input or output', async () => {
  const viewer = await registerOtherPerson(server, 'viewer@example.com', 'viewer');
  const developer = await registerOtherPerson(server, 'developer@example.com', 'developer');
  const person = await Person.setUpOwner(server);
  await stepUp(person);
  const issueToken = async (scopes: readonly string[]): Promise<string> =>
    (await person.post<{ token: string }>('/v1/account/tokens', { name: 'narrow', scopes })).body.token;
  const read = async (headers: Readonly<Record<string, string>>) =>
    (await server.api<Invocation>('GET', path(`/${first.id}`), { key: null, headers })).body;
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const scopesWithoutWrite = TOKEN_SCOPES.filter(scope => scope !== 'applications:write' && scope !== 'account:tokens');
  for (const headers of [viewer.headers, bearer(await issueToken(scopesWithoutWrite))]) {
    const { input, output, receipt } = await read(headers);
    assert.deepEqual([input, output, receipt === undefined], [undefined, undefined, false]);
  }
  for (const headers of [developer.headers, bearer(await issueToken(['applications:write']))]) {
    const { input, output } = await read(headers);
    assert.deepEqual([input, output], [{ orderId: '0' }, first.output]);
  }
});

test('an invocation of another application and an unknown invocation are not found', async () => {
  const otherApplicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  for (const at of [
    `/v1/applications/${otherApplicationResponse.body.id}/invocations/${first.id}`,
    path(`/${server.applicationId}`),
  ]) {
    const { status, body } = await server.api('GET', at, { key: token });
    assert.deepEqual([status, body.code], [404, 'not_found']);
  }
  const emptyListResponse = await server.api<InvocationPage>(
    'GET',
    `/v1/applications/${otherApplicationResponse.body.id}/invocations`,
    {
      key: token,
    },
  );
  assert.deepEqual(emptyListResponse.body, { data: [] });
  assert.equal((await server.api('GET', path(), { key: one.key })).status, 401);
});
