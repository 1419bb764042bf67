// The purchase of credit that the operator confirms by hand, from the quote to the confirmation, with its permissions
// and refusals, and the catalog of packs.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { AuditPage } from '../../contract/audit.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { CreditEntryPage, Credits } from '../../contract/credits.ts';
import type { Catalog, Checkout, CheckoutPage, Quote } from '../../contract/topups.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { stepUp } from '../harness/members.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { runBerth, startServer } from '../harness/server.ts';

const PACKS = [
  { id: 'p50', credits: 50, price: 4500, currency: 'EUR' },
  { id: 'p100', credits: 100, price: 8000, currency: 'EUR', bonus: 10 },
];
const PAYMENT_TEXT = 'Transfer to DE00 0000 with the reference.';
const CHECKOUTS = '/v1/topups/manual/checkouts';

const server = await startServer({
  clock: 'test',
  env: {
    BERTH_CREDIT_PACKS: JSON.stringify(PACKS),
    BERTH_PAYMENT_TEXT: PAYMENT_TEXT,
    BERTH_REGISTRATION: 'open',
  },
});
const applicationId = server.applicationId;
const QUOTE = `/v1/topups/applications/${applicationId}/quote`;
let ada: Person;
let keys = 0;

before(async () => {
  ada = await Person.setUpOwner(server);
});

const readQuote = async (person = ada): Promise<Quote> => {
  const { status, body, text } = await person.get<Quote>(QUOTE);
  assert.equal(status, 200, text);
  return body;
};

/** Opens a checkout. `headers` replace the fresh idempotency key. */
async function open(fields: object = {}, person = ada, headers?: Record<string, string>) {
  keys += 1;
  const { quoteId } = await readQuote(ada);
  const body = { applicationId, packId: 'p50', quoteId, ...fields };
  return person.send<Checkout & ErrorBody>(
    ...(['POST', CHECKOUTS, body, headers ?? { 'idempotency-key': `order ${keys}` }] as const),
  );
}

async function openSuccessfully(fields: object = {}): Promise<Checkout> {
  const { status, body, text } = await open(fields);
  assert.equal(status, 201, text);
  return body;
}

const readAvailableCredits = async (): Promise<number> =>
  (await ada.get<Credits>(`/v1/applications/${applicationId}/credits`)).body.available;

const assertRefused = (response: { status: number; body: unknown; text: string }, status: number, code: string): void =>
  assert.deepEqual([response.status, (response.body as ErrorBody).code], [status, code], response.text);

test('a quote contains the packs of the operator, and reports whether the caller may buy', async () => {
  const quote = await readQuote();
  assert.deepEqual([quote.available, quote.currency, quote.mayBuy], [true, 'EUR', true]);
  assert.deepEqual(quote.packs[1], {
    ...{ id: 'p100', credits: 100, bonus: 10, price: { amount: 8000, currency: 'EUR' }, providers: ['manual'] },
  });
  assert.deepEqual(quote.providers, [{ id: 'manual', auto: false }]);
  const viewer = await registerOtherPerson(server, 'viewer@example.com', 'viewer');
  assert.equal((await readQuote(viewer)).mayBuy, false);
  assertRefused(await (await registerOtherPerson(server, 'eve@example.com')).get(QUOTE), 404, 'not_found');
});

test('an order is credited once, with its bonus, when the operator confirms the payment', async () => {
  const availableBefore = await readAvailableCredits();
  const checkout = await openSuccessfully({ packId: 'p100' });
  const { status, credits, bonus, price, reference, paymentText } = checkout;
  assert.deepEqual([status, credits, bonus, price.amount, paymentText], ['open', 100, 10, 8000, PAYMENT_TEXT]);
  assert.match(reference, /^[2-9A-Z]{10}$/);
  assert.equal(await readAvailableCredits(), availableBefore, 'an order alone credits nothing');
  const pendingConfirmations = Promise.all(
    [1, 2, 3].map(() => server.operate('credits', 'confirm', checkout.id, '--reason', 'statement 7', '--json')),
  );
  const waitResponse = await ada.get<Checkout>(`${CHECKOUTS}/${checkout.id}?wait=50`);
  const codes = (await pendingConfirmations).map(({ code }) => code).sort();
  assert.equal(codes.filter(code => code === 0).length, 1, String(codes));
  assert.deepEqual([waitResponse.body.status, waitResponse.body.paymentText], ['credited', undefined]);
  assert.equal(await readAvailableCredits(), availableBefore + 110_000_000);
  const entriesResponse = await ada.get<CreditEntryPage>(`/v1/applications/${applicationId}/credits/entries?type=fund`);
  const [entry] = entriesResponse.body.data;
  assert.equal(entry?.checkoutId, checkout.id);
  assert.deepEqual(entry.legs, {
    funding: -100_000_000,
    promo: -10_000_000,
    available: 110_000_000,
    reserved: 0,
    revenue: 0,
  });
  const { body } = await ada.get<AuditPage>(`/v1/applications/${applicationId}/audit?action=topup.credited`);
  const [auditEntry] = body.data;
  assert.deepEqual([auditEntry?.actor.kind, auditEntry?.target?.id], ['operator', checkout.id]);
  assert.equal(Object(auditEntry?.details).reason, 'statement 7');
});

test('resending an order with the same idempotency key returns the same order', async () => {
  const { quoteId } = await readQuote();
  const body = { applicationId, packId: 'p50', quoteId };
  const headers = { 'idempotency-key': 'the same' };
  const firstResponse = await ada.send<Checkout>('POST', CHECKOUTS, body, headers);
  const secondResponse = await ada.send<Checkout>('POST', CHECKOUTS, body, headers);
  assert.deepEqual([firstResponse.status, secondResponse.status], [201, 201], secondResponse.text);
  assert.equal(secondResponse.body.id, firstResponse.body.id);
  assertRefused(await ada.send('POST', CHECKOUTS, { ...body, packId: 'p100' }, headers), 409, 'idempotency_conflict');
});

test('a cancelled checkout cannot be confirmed or credited', async () => {
  const { id } = await openSuccessfully();
  const cancelResponse = await ada.post<Checkout>(`${CHECKOUTS}/${id}/cancel`);
  assert.deepEqual([cancelResponse.status, cancelResponse.body.status], [200, 'cancelled']);
  assertRefused(await ada.post(`${CHECKOUTS}/${id}/cancel`), 409, 'already_decided');
  const availableBefore = await readAvailableCredits();
  assert.notEqual((await server.operate('credits', 'confirm', id)).code, 0);
  assert.equal(await readAvailableCredits(), availableBefore);
  const { body } = await ada.get<CheckoutPage>(`${CHECKOUTS}?applicationId=${applicationId}&limit=1`);
  assert.equal(body.data[0]?.id, id);
  assert.ok(body.nextCursor);
});

test('an invalid order is refused, and nothing is ordered', async () => {
  const listCheckouts = async () =>
    (await ada.get<CheckoutPage>(`${CHECKOUTS}?applicationId=${applicationId}&limit=100`)).body.data;
  const countBefore = (await listCheckouts()).length;
  assertRefused(await open({}, ada, {}), 400, 'idempotency_key_required');
  assertRefused(await open({ quoteId: 'mh2k3l9s.forged' }), 409, 'not_ready');
  assertRefused(await open({ packId: 'p1' }), 400, 'invalid_request');
  assertRefused(await open({ price: 1 }), 400, 'unknown_field');
  assertRefused(await ada.post('/v1/topups/stripe/checkouts'), 404, 'route_not_found');
  assertRefused(await open({ applicationId: '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' }), 404, 'not_found');
  assert.equal((await listCheckouts()).length, countBefore);
});

test('only an owner can read checkouts, and only an owner with a recent step-up can buy credit', async () => {
  const { id } = await openSuccessfully();
  const admin = await registerOtherPerson(server, 'admin@example.com', 'admin');
  const stranger = await registerOtherPerson(server, 'mallory@example.com');
  for (const [person, code, status] of [
    [admin, 'permission_denied', 403],
    [stranger, 'not_found', 404],
  ] as const) {
    await stepUp(person);
    assertRefused(await open({}, person), status, code);
    assertRefused(await person.get(`${CHECKOUTS}/${id}`), status, code);
    assertRefused(await person.get(`${CHECKOUTS}?applicationId=${applicationId}`), status, code);
    assertRefused(await person.post(`${CHECKOUTS}/${id}/cancel`), status, code);
  }
  const token = await createOwnerToken(server);
  const { quoteId } = await readQuote();
  const tokenResponse = await server.api('POST', CHECKOUTS, {
    ...{ key: token, headers: { 'idempotency-key': 'token' } },
    body: { applicationId, packId: 'p50', quoteId },
  });
  assertRefused(tokenResponse, 401, 'insufficient_user_authentication');
  await server.advance(301_000);
  assertRefused(await open(), 401, 'insufficient_user_authentication');
  await stepUp(ada);
  await openSuccessfully();
});

test('an expired quote is refused, and a checkout expires after two weeks', async () => {
  const { quoteId } = await readQuote();
  const { id } = await openSuccessfully();
  await server.advance(15 * 60_000);
  await stepUp(ada);
  assertRefused(await open({ quoteId }), 409, 'not_ready');
  await server.advance(14 * 24 * 3_600_000);
  const person = new Person(server);
  await person.signIn('ada@example.com');
  const readResponse = await person.get<Checkout>(`${CHECKOUTS}/${id}`);
  assert.deepEqual([readResponse.status, readResponse.body.status], [200, 'expired'], readResponse.text);
  ada = person;
});

test('automatic top-up is refused if payments are confirmed manually', async () => {
  await stepUp(ada);
  const body = { applicationId, enabled: true, threshold: 1, packId: 'p50', monthlyCap: 1 };
  assertRefused(await ada.send('PUT', '/v1/topups/manual/auto', body), 422, 'feature_unavailable');
});

test('an application can have at most 20 open checkouts', async () => {
  const responses = [];
  for (let at = 0; at < 21; at += 1) responses.push(await open());
  assert.equal(responses.filter(({ status }) => status === 201).length, 20);
  assertRefused(responses.at(-1) ?? assert.fail(), 409, 'limit_reached');
});

test('the catalog is public, lists the built-in operations, and returns 304 for its current ETag', async () => {
  const { status, body, headers } = await server.api<Catalog>('GET', '/v1/purchases/catalog', { key: null });
  assert.equal(status, 200);
  assert.deepEqual(
    body.data.map(({ id }) => id),
    [
      ...['content', 'download', 'extract', 'handoff', 'pdf', 'screenshot', 'steps'].map(name => `browser.${name}`),
      ...['memory.get', 'memory.put'],
    ],
  );
  assert.match(body.digest, /^sha256:[0-9a-f]{64}$/);
  for (const { id, kind, meters, price } of body.data) {
    const expectedMeters = id.startsWith('browser.') ? ['browserSecond', 'egressMegabyte'] : [];
    assert.deepEqual([kind, meters, price.microCredits], ['operation', expectedMeters, 0]);
  }
  const secondResponse = await server.api('GET', '/v1/purchases/catalog', {
    key: null,
    headers: { 'if-none-match': String(headers.etag) },
  });
  assert.equal(secondResponse.status, 304);
});

for (const [name, value] of [
  ['BERTH_CREDIT_PACKS', '[{"id":"p50"}]'],
  ['BERTH_CREDIT_PACKS', 'fifty'],
  ['BERTH_PAYMENT_TEXT', ''],
] as const)
  test(`the configuration check refuses ${name}=${value}, and the error message contains the name of the setting`, async () => {
    const env = { BERTH_CREDIT_PACKS: JSON.stringify(PACKS), BERTH_PAYMENT_TEXT: 'x', [name]: value };
    const { code, stderr } = await runBerth(['config', 'check'], {
      ...{ PATH: process.env.PATH ?? '' },
      ...env,
    });
    assert.notEqual(code, 0);
    assert.match(stderr, new RegExp(`${name} is`));
  });
