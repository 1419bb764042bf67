// Tries every operation of the API for configured operations, invocations, credentials, webhooks, credit or consumers
// with each role, with each scope of a token, and as a person who is not a member. Operations, scopes and the role in
// each description are read from the contract, so a new operation becomes a case here, or fails because `RESOURCES` has
// no entry for its path.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Tag } from '../../contract/operation.ts';
import { OPERATION_IDS, type OperationId, operation } from '../../contract/operations.ts';
import { isAtLeast, ROLES, type Role } from '../../contract/roles.ts';
import { MANAGE_TOKENS_SCOPE, TOKEN_SCOPES, type TokenScope } from '../../contract/tokens.ts';
import type { Checkout, Quote } from '../../contract/topups.ts';
import type { WebhookDelivery } from '../../contract/webhooks.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { stepUp } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';
import { createWebhook, sendTestEvent, waitForDelivery, webhooksPath } from '../harness/webhooks.ts';

const TABLE_TAGS: readonly Tag[] = ['Operations', 'Credentials', 'Webhooks', 'Credit', 'Invocations', 'Consumers'];
const TESTED_OPERATIONS = OPERATION_IDS.filter(id => {
  const { tag, credential } = operation(id);
  return TABLE_TAGS.includes(tag) && (credential === 'account' || credential === 'human');
});
/** All scopes of tokens except the one for managing tokens. */
const SCOPES = TOKEN_SCOPES.filter(scope => scope !== MANAGE_TOKENS_SCOPE);
const CREDENTIAL = { type: 'api_key', value: { key: 'of-the-role-table' }, hosts: ['127.0.0.1'] };
const CHECKOUTS = '/v1/topups/manual/checkouts';
/** Maps an operation that cannot succeed in this test to the error status that counts as permitted. */
const PERMITTED_STATUSES: Partial<Record<OperationId, number>> = { replaceAutoTopUp: 422 };

const upstream = await openUpstream();
const PROVIDER = { title: 'Acme', issuer: upstream.url, clientId: 'shop' };
upstream.respondTo('/.well-known/openid-configuration', (_, response) =>
  sendJson(response, 200, {
    issuer: upstream.url,
    authorization_endpoint: `${upstream.url}/authorize`,
    token_endpoint: `${upstream.url}/token`,
    jwks_uri: `${upstream.url}/keys`,
    id_token_signing_alg_values_supported: ['RS256'],
  }),
);
const server = await startServer({
  env: {
    ...upstream.settings,
    BERTH_REGISTRATION: 'open',
    BERTH_CREDIT_PACKS: '[{"id":"p50","credits":50,"price":4500,"currency":"EUR"}]',
    BERTH_PAYMENT_TEXT: 'Transfer it.',
  },
});
const { applicationId } = server;
const token = await createOwnerToken(server);
const owner = await Owner.open(server);
await liftLimits(server);

type Who = Role | 'no member';
const people = new Map<Who, Person>();
/** One token per person, with every scope in `SCOPES`. */
const tokens = new Map<Who, string>();
/** The owner's tokens, with one scope each. */
const narrowTokens = new Map<TokenScope, string>();
let foreignToken = '';
let resourceCount = 0;

before(async () => {
  people.set('owner', await Person.setUpOwner(server));
  for (const role of ROLES.filter(one => one !== 'owner'))
    people.set(role, await registerOtherPerson(server, `${role}@example.com`, role));
  people.set('no member', await registerOtherPerson(server, 'nobody@example.com'));
  for (const [who, person] of people) {
    await stepUp(person);
    tokens.set(who, await issueToken(person, { scopes: SCOPES }));
  }
  for (const scope of SCOPES) narrowTokens.set(scope, await issueToken(personOf('owner'), { scopes: [scope] }));
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  foreignToken = await issueToken(personOf('owner'), {
    scopes: SCOPES,
    applicationIds: [applicationResponse.body.id],
  });
});

const personOf = (who: Who): Person => people.get(who) ?? assert.fail(who);

async function issueToken(person: Person, fields: object): Promise<string> {
  const { status, body, text } = await person.post<{ token: string }>('/v1/account/tokens', { name: 'x', ...fields });
  assert.equal(status, 201, text);
  return body.token;
}

// ---- resources of the operations ------------------------------------------------------------------------------------

type Resource = Readonly<Record<string, string>>;

/**
 * Functions that create the resource of an operation, and return its path variables. Each key is the start of a path.
 */
const RESOURCES: Readonly<Record<string, (id: OperationId) => Promise<Resource>>> = {
  '/v1/applications/{appId}/operations/{': async id => {
    const name = `orders.n${++resourceCount}`;
    const { status, text } = await owner.configure(name, cancelOrderOperation(upstream));
    assert.equal(status, 201, text);
    if (id === 'withdrawOperation') await owner.send('POST', `operations/${name}/publish`);
    return { id: name };
  },
  '/v1/applications/{appId}/credentials/{': async () => {
    const name = `shop-${++resourceCount}`;
    assert.equal((await owner.writeCredential(name, CREDENTIAL)).status, 201);
    const rotateResponse = await owner.writeCredential(name, { ...CREDENTIAL, value: { key: 'rotated value' } }, '*');
    assert.equal(rotateResponse.status, 200, rotateResponse.text);
    return { id: name };
  },
  '/v1/applications/{appId}/webhooks/{': async id => {
    const { id: webhookId } = await createWebhook(server, token, { url: `${upstream.url}/hook` });
    if (!operation(id).path.includes('{deliveryId}')) return { webhookId };
    const sentDelivery: WebhookDelivery = await sendTestEvent(server, token, webhookId);
    const { id: deliveryId } = await waitForDelivery(
      server,
      token,
      sentDelivery,
      ({ status }) => status === 'delivered',
    );
    return { webhookId, deliveryId };
  },
  '/v1/applications/{appId}/identity/providers/{': async () => {
    const path = `/v1/applications/${applicationId}/identity/providers/acme`;
    const { status, text } = await personOf('owner').send('PUT', path, PROVIDER, { 'if-match': '*' });
    assert.ok(status === 200 || status === 201, text);
    return { providerId: 'acme' };
  },
  '/v1/applications/{appId}/invocations/{': async () => ({ id: await invokeOnce() }),
  [`${CHECKOUTS}/{`]: async () => {
    const body = await createOrderBody();
    const key = { 'idempotency-key': `order ${++resourceCount}` };
    const response = await personOf('owner').send<Checkout>('POST', CHECKOUTS, body, key);
    assert.equal(response.status, 201, response.text);
    return { id: response.body.id };
  },
};

let invocationIdPromise: Promise<string> | undefined;
/** Returns the id of an invocation that can be read any number of times. */
function invokeOnce(): Promise<string> {
  invocationIdPromise ??= (async () => {
    await owner.publish('orders.called', cancelOrderOperation(upstream));
    const { key } = await issueAgentKey(server, { grants: [{ operationId: 'orders.called' }] });
    const headers = { 'idempotency-key': 'the role table' };
    const { status, body, text } = await invoke(server, key, 'orders.called', { orderId: '1' }, { headers });
    assert.equal(status, 200, text);
    return body.id;
  })();
  return invocationIdPromise;
}

async function createOrderBody(): Promise<object> {
  const { body } = await personOf('owner').get<Quote>(`/v1/topups/applications/${applicationId}/quote`);
  return { applicationId, packId: 'p50', quoteId: body.quoteId };
}

/** Maps an operation to a valid body. The default is the example in the contract. */
const BODIES: Partial<Record<OperationId, () => object | Promise<object>>> = {
  configureOperation: () => cancelOrderOperation(upstream, { title: `Title ${++resourceCount}` }),
  createWebhook: () => ({ name: 'roles', url: `${upstream.url}/hook` }),
  openCheckout: createOrderBody,
  writeConsumerProvider: () => PROVIDER,
  replaceAutoTopUp: () => ({ ...Object(operation('replaceAutoTopUp').bodyExample), applicationId }),
};

async function createResource(id: OperationId): Promise<Resource> {
  const { path } = operation(id);
  const rest = path.replace('{appId}', '');
  if (!rest.includes('{')) return {};
  const prefix =
    Object.keys(RESOURCES).find(start => path.startsWith(start)) ??
    assert.fail(`${id}: RESOURCES has no entry for ${path}; add one`);
  return (await RESOURCES[prefix]?.(id)) ?? {};
}

/** Removes webhooks and orders, because only a few can exist at the same time. */
async function tidyUp(): Promise<void> {
  const { body: hooks } = await server.api<{ data: Array<{ id: string }> }>('GET', webhooksPath(server), {
    key: token,
  });
  for (const { id } of hooks.data) await server.api('DELETE', webhooksPath(server, `/${id}`), { key: token });
  const person = personOf('owner');
  const { body: orders } = await person.get<{ data: Checkout[] }>(`${CHECKOUTS}?applicationId=${applicationId}`);
  for (const { id, status } of orders.data) if (status === 'open') await person.post(`${CHECKOUTS}/${id}/cancel`);
}

// ---- the table -------------------------------------------------------------------------------------------------------

type Caller = Person | string;

async function ask(id: OperationId, by: Caller, resource: Resource): Promise<number> {
  const { method, path: pattern, bodyExample, body: schema } = operation(id);
  const values: Resource = { appId: applicationId, ...resource };
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? assert.fail(`${id}: ${name}`));
  const query = id === 'listCheckouts' ? `?applicationId=${applicationId}` : '';
  const body =
    schema &&
    (await (BODIES[id]?.() ??
      bodyExample ??
      assert.fail(`${id} has no example of a body in the contract; add a body to BODIES`)));
  const headers = {
    ...(typeof by === 'string' ? { authorization: `Bearer ${by}` } : by.headers),
    ...(method === 'POST' ? { 'idempotency-key': `cell ${++resourceCount}` } : {}),
    ...(method === 'PUT' || method === 'PATCH' || method === 'DELETE' ? { 'if-match': '*' } : {}),
  };
  return (await server.api(method, path + query, { key: null, headers, body })).status;
}

/**
 * Returns the role that the description of the operation names. An operation without a role in its description must be
 * a read, and needs the weakest role.
 */
function roleOf(id: OperationId): Role {
  const { description, isWrite } = operation(id);
  const namedRole = /Requires the role (\w+)/.exec(description)?.[1];
  const role = ROLES.find(one => one === namedRole);
  assert.equal(role, namedRole, `the description of ${id} names an unknown role`);
  assert.ok(role || !isWrite, `the description of ${id}, which is not a read, must name a role`);
  return role ?? 'viewer';
}

const isForPeople = (id: OperationId): boolean => operation(id).credential === 'human' || operation(id).stepUp === true;
const isPermitted = (id: OperationId, status: number): boolean =>
  status === (PERMITTED_STATUSES[id] ?? (status < 300 ? status : 0));

for (const id of TESTED_OPERATIONS)
  test(`${id}: callers with each role, tokens with each scope and callers from outside the application get the responses that the contract specifies`, async () => {
    const minRole = roleOf(id);
    const unusedResource = await createResource(id);
    for (const who of [...ROLES, 'no member'] as const) {
      const isAllowed = who !== 'no member' && isAtLeast(who, minRole);
      const refusalStatus = who === 'no member' ? 404 : 403;
      const cookieStatus = await ask(id, personOf(who), isAllowed ? await createResource(id) : unusedResource);
      assert.ok(
        isAllowed ? isPermitted(id, cookieStatus) : cookieStatus === refusalStatus,
        `${who} with a cookie: ${cookieStatus}`,
      );
      const tokenStatus = await ask(
        id,
        tokens.get(who) ?? '',
        isAllowed && !isForPeople(id) ? await createResource(id) : unusedResource,
      );
      if (isForPeople(id)) assert.ok([401, 403, 404].includes(tokenStatus), `${who} with a token: ${tokenStatus}`);
      else
        assert.ok(
          isAllowed ? isPermitted(id, tokenStatus) : tokenStatus === refusalStatus,
          `${who} with a token: ${tokenStatus}`,
        );
    }
    if (isForPeople(id)) return;
    const { scopes = assert.fail(`${id} accepts tokens, but the contract specifies no scope for it`) } = operation(id);
    const resource = await createResource(id);
    assert.equal(await ask(id, foreignToken, resource), 404, 'a token for another application');
    for (const [scope, narrowToken] of narrowTokens) {
      const isAllowed = scopes.includes(scope);
      const status = await ask(id, narrowToken, isAllowed ? await createResource(id) : resource);
      assert.ok(
        isAllowed ? isPermitted(id, status) : status === 403,
        `a token with only the scope ${scope}: ${status}`,
      );
    }
    await tidyUp();
  });
