// What agents may remember about a consumer: versioned items that are stored sealed, and consents that give access to
// the items and can be withdrawn. The tests also cover the export of all data, linking, and deletion.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import yauzl from 'yauzl';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConsumerDevices, ConsumerReceipt, ConsumerReceiptPage } from '../../contract/consumer-data.ts';
import type { Consent, Consents, MemoryItem, MemoryPage } from '../../contract/consumer-memory.ts';
import type { ConsumerProfile, ConsumerTokens } from '../../contract/consumers.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { queryRows } from '../harness/other-person.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer({ clock: 'test', env: { BERTH_WARM: '0' } });
const owner = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, owner);
const grants = [{ operationId: 'memory.get' }, { operationId: 'memory.put' }];
const agent = await issueAgentKey(server, { name: 'Shop agent', grants });
const otherAgent = await issueAgentKey(server, { name: 'Other agent', grants });

type Of<Body> = Body & ErrorBody;
type SignedInConsumer = Awaited<ReturnType<typeof lab.signIn>>;
let callCount = 0;

const send = <Body>(consumer: SignedInConsumer, name: string, body: object = {}) =>
  lab.send<Of<Body>>(name, body, consumer.accessToken);
const put = (consumer: SignedInConsumer, key: string, value: unknown, more: object = {}) =>
  send<MemoryItem>(consumer, 'memory.put', { key, value, ...more });
const endUserOf = ({ consumer: { providerId, subject } }: SignedInConsumer) => ({ providerId, subject });
const consent = async (consumer: SignedInConsumer, keys: readonly string[], more: object = {}): Promise<Consent> => {
  const { status, body, text } = await send<Consent>(consumer, 'memory.consent', {
    ...{ keyId: agent.id, access: 'read', keys },
    ...more,
  });
  assert.equal(status, 200, text);
  return body;
};
const getAsAgent = (consumer: SignedInConsumer, key: string, by = agent.key) =>
  invoke(server, by, 'memory.get', { endUser: endUserOf(consumer), key });
const putAsAgent = (consumer: SignedInConsumer, key: string, value: unknown, more: object = {}, by = agent.key) =>
  invoke(
    server,
    by,
    'memory.put',
    { endUser: endUserOf(consumer), key, value, ...more },
    { headers: { 'idempotency-key': `put ${++callCount}` } },
  );
const refusalOf = ({ status, body }: { status: number; body: ErrorBody }) => [status, body.code];

const sql = (text: string, values: readonly unknown[] = []) => queryRows(server, text, values);

const kim = await lab.signIn('kim@example.com');
const lee = await lab.signIn('lee@example.com');

test('a memory item can be written, read, listed by prefix in pages, and deleted', async () => {
  const writeResponse = await put(kim, 'address.home', { city: 'Vienna' });
  assert.equal(writeResponse.status, 200, writeResponse.text);
  await put(kim, 'address.work', 'Linz');
  await put(kim, 'size', 42);
  const readResponse = await send<MemoryItem>(kim, 'memory.get', { key: 'address.home' });
  assert.deepEqual(
    [readResponse.body.value, readResponse.body.updatedBy],
    [{ city: 'Vienna' }, { kind: 'consumer', id: kim.consumer.id }],
  );
  const firstResponse = await send<MemoryPage>(kim, 'memory.list', { prefix: 'address.', limit: 1 });
  const secondResponse = await send<MemoryPage>(kim, 'memory.list', {
    prefix: 'address.',
    limit: 1,
    cursor: firstResponse.body.nextCursor,
  });
  assert.deepEqual(
    [...firstResponse.body.data, ...secondResponse.body.data].map(({ key }) => key),
    ['address.home', 'address.work'],
  );
  assert.equal(secondResponse.body.nextCursor, undefined);
  assert.equal((await send(kim, 'memory.delete', { key: 'size' })).status, 200);
  assert.deepEqual(refusalOf(await send(kim, 'memory.get', { key: 'size' })), [404, 'not_found']);
  const deleteResponse = await send<{ deleted: number }>(kim, 'memory.delete', { prefix: 'address.' });
  assert.equal(deleteResponse.body.deleted, 2, deleteResponse.text);
  assert.deepEqual(refusalOf(await send(kim, 'memory.delete', {})), [400, 'invalid_request']);
});

test('a write can require the version that was read, and is refused if the item has another version', async () => {
  const writeResponse = await put(kim, 'plan', 1, { ifVersion: 0 });
  assert.equal(writeResponse.status, 200, writeResponse.text);
  assert.deepEqual(refusalOf(await put(kim, 'plan', 2, { ifVersion: 0 })), [409, 'revision_conflict']);
  const lateResponse = await put(kim, 'plan', 2, { ifVersion: writeResponse.body.version + 7 });
  assert.deepEqual(lateResponse.body.details, { version: writeResponse.body.version });
  const both = await Promise.all(
    [2, 3].map(value => put(kim, 'plan', value, { ifVersion: writeResponse.body.version })),
  );
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  // A deleted item's version is not used again, so a writer that read the old item cannot overwrite a new one.
  await send(kim, 'memory.delete', { key: 'plan' });
  const lastResponse = await put(kim, 'plan', 4);
  assert.ok(lastResponse.body.version > writeResponse.body.version, lastResponse.text);
});

for (const [what, given] of [
  ['a key with a path', { key: '../plan', value: 1 }],
  ['a key with a slash', { key: 'a/b', value: 1 }],
  ['an encoded key', { key: 'a%2fb', value: 1 }],
  ['a key with a NUL', { key: 'a\u0000b', value: 1 }],
  ['a key with a line break', { key: 'a\n', value: 1 }],
  ['an upper-case key', { key: 'Plan', value: 1 }],
  ['a full-width key', { key: 'ｐlan', value: 1 }],
  ['an empty key', { key: '', value: 1 }],
  ['a key that is too long', { key: 'k'.repeat(129), value: 1 }],
  ['__proto__', { key: '__proto__', value: 1 }],
  ['a value over 64 KiB', { key: 'big', value: 'x'.repeat(65_535) }],
  ['a missing value', { key: 'none' }],
  ['an unknown field', { key: 'plan', value: 1, ifversion: 1 }],
] as const)
  test(`memory.put refuses ${what}`, async () => {
    const { status, body, text } = await lab.send<ErrorBody>('memory.put', given, kim.accessToken);
    assert.equal(status, 400, text);
    assert.match(body.code, /^(invalid_request|unknown_field)$/);
  });

test('the memory of a consumer is limited to 4 MiB and 1,000 items', async () => {
  const fullConsumer = await lab.signIn('full@example.com');
  const value = 'x'.repeat(65_000);
  const responses = await Promise.all(Array.from({ length: 66 }, (_, n) => put(fullConsumer, `large.${n}`, value)));
  assert.deepEqual(
    [200, 409].map(wanted => responses.filter(({ status }) => status === wanted).length),
    [64, 2],
  );
  await send(fullConsumer, 'memory.delete', { prefix: '' });
  await sql(
    `insert into consumer_memory (consumer_id, key, version, sealed, bytes, updated_at, updated_by_kind, updated_by_id)
     select $1, 'item.' || n, n, '', 1, now(), 'consumer', $1 from generate_series(1, 1000) n`,
    [fullConsumer.consumer.id],
  );
  assert.deepEqual(refusalOf(await put(fullConsumer, 'one.more', 1)), [409, 'limit_reached']);
});

test('an agent can read and write only items that the consumer allowed, and a refusal contains the consent URL', async () => {
  await put(kim, 'address.home', 'Ring 1');
  const refusal = await getAsAgent(kim, 'address.home');
  assert.deepEqual(refusalOf(refusal as never), [403, 'consent_required'], refusal.text);
  const { consentUrl } = Object((refusal.body as unknown as ErrorBody).details);
  assert.equal(consentUrl, `${server.url}/consumer/${lab.appId}/consent/${agent.id}?key=address.home&access=read`);
  const givenConsent = await consent(kim, ['address.*']);
  assert.equal(givenConsent.agent, 'Shop agent');
  const readResponse = await getAsAgent(kim, 'address.home');
  assert.equal(readResponse.body.status, 'succeeded', readResponse.text);
  assert.equal(Object(readResponse.body.output).item.value, 'Ring 1');
  for (const [key, by] of [
    ['address', agent.key],
    ['addresses', agent.key],
    ['plan', agent.key],
    ['address.home', otherAgent.key],
  ] as const)
    assert.equal((await getAsAgent(kim, key, by)).status, 403, key);
  assert.equal((await getAsAgent(lee, 'address.home')).status, 403);
  assert.equal((await putAsAgent(kim, 'address.home', 'mine')).status, 403);
  const missingItemResponse = await getAsAgent(kim, 'address.nothing');
  assert.deepEqual(
    [missingItemResponse.body.status, missingItemResponse.body.output],
    ['succeeded', {}],
    missingItemResponse.text,
  );
});

test('a memory item records the agent that wrote the item, and a write by an agent can require a version', async () => {
  await consent(kim, ['notes'], { access: 'write' });
  const writeResponse = await putAsAgent(kim, 'notes', ['likes tea'], { ifVersion: 0 });
  assert.equal(writeResponse.body.status, 'succeeded', writeResponse.text);
  const { body } = await send<MemoryItem>(kim, 'memory.get', { key: 'notes' });
  assert.deepEqual([body.value, body.updatedBy], [['likes tea'], { kind: 'agent_key', id: agent.id }]);
  const lateResponse = await putAsAgent(kim, 'notes', [], { ifVersion: 0 });
  assert.deepEqual(
    [lateResponse.body.status, lateResponse.body.error?.code],
    ['failed', 'revision_conflict'],
    lateResponse.text,
  );
  assert.deepEqual(Object(lateResponse.body.error?.details), { version: body.version });
  assert.equal((await getAsAgent(kim, 'notes')).body.status, 'succeeded'); // Consent for writing includes reading.
  const sizeRefusal = await putAsAgent(kim, 'notes', 'x'.repeat(65_535));
  assert.deepEqual(refusalOf(sizeRefusal as never), [400, 'invalid_request'], sizeRefusal.text);
});

test('the value that an agent reads is not stored with its call', async () => {
  const readResponse = await getAsAgent(kim, 'notes');
  const { body } = await server.api<Invocation>('GET', agentPath(server, `invocations/${readResponse.body.id}`), {
    key: agent.key,
  });
  assert.deepEqual([body.status, body.output, body.outputDigest], ['succeeded', undefined, undefined]);
});

test('consent for all agents applies to every agent until the consent expires, and an invalid consent is refused', async () => {
  const jo = await lab.signIn('jo@example.com');
  await put(jo, 'name', 'Jo');
  await consent(jo, ['*'], { keyId: '*', expiresAt: new Date(Date.now() + 86_400_000 * 400).toISOString() });
  assert.equal((await getAsAgent(jo, 'name', otherAgent.key)).body.status, 'succeeded');
  const past = await send(jo, 'memory.consent', {
    ...{ keyId: '*', keys: ['*'], access: 'read', expiresAt: '2020-01-01T00:00:00.000Z' },
  });
  assert.deepEqual(refusalOf(past), [400, 'invalid_request']);
  await sql('update consumer_consents set expires_at = created_at where consumer_id = $1', [jo.consumer.id]);
  assert.equal((await getAsAgent(jo, 'name')).status, 403);
  for (const keys of [['A*'], ['*a'], ['a**'], [''], []])
    assert.equal((await send(jo, 'memory.consent', { keyId: '*', keys, access: 'read' })).status, 400, String(keys));
  const unknownKeyResponse = await send(jo, 'memory.consent', { keyId: jo.consumer.id, keys: ['a'], access: 'read' });
  assert.deepEqual(refusalOf(unknownKeyResponse), [404, 'not_found']);
});

test('reads and writes that an agent starts after the withdrawal of consent is confirmed do not succeed', async () => {
  const ann = await lab.signIn('ann@example.com');
  for (let round = 0; round < 3; round += 1) {
    await put(ann, 'secret', round);
    const { id } = await consent(ann, ['secret'], { access: 'write' });
    assert.equal((await getAsAgent(ann, 'secret')).body.status, 'succeeded');
    let isWithdrawn = false;
    const lateCallIds: string[] = [];
    const busyCalls = Array.from({ length: 4 }, async (_, n) => {
      for (let call = 0; call < 3; call += 1) {
        const wasWithdrawn = isWithdrawn;
        const { body } = n % 2 ? await getAsAgent(ann, 'secret') : await putAsAgent(ann, 'secret', `${n} ${call}`);
        if (wasWithdrawn && body.status === 'succeeded') lateCallIds.push(body.id);
      }
    });
    const { status } = await send<Consents>(ann, 'memory.withdraw', { id });
    isWithdrawn = true;
    const laterItemResponse = await send<MemoryItem>(ann, 'memory.get', { key: 'secret' });
    await Promise.all(busyCalls);
    assert.deepEqual([status, lateCallIds], [200, []]);
    // Nothing was written with this consent after the response to the withdrawal.
    assert.deepEqual((await send<MemoryItem>(ann, 'memory.get', { key: 'secret' })).body, laterItemResponse.body);
    assert.equal((await getAsAgent(ann, 'secret')).status, 403);
  }
});

test('values are encrypted in the database, and a value copied from the row of another consumer cannot be decrypted', async () => {
  const text = 'The quick brown secret';
  await put(kim, 'sealed', text);
  await put(lee, 'sealed', 'of lee');
  const plainTextQuery = 'select key from consumer_memory where position(convert_to($1, $2) in sealed) > 0';
  assert.deepEqual(await sql(plainTextQuery, [text, 'utf8']), []);
  await sql(
    `update consumer_memory set sealed = (select sealed from consumer_memory where consumer_id = $1 and key = 'sealed')
     where consumer_id = $2 and key = 'sealed'`,
    [kim.consumer.id, lee.consumer.id],
  );
  assert.equal((await send(lee, 'memory.get', { key: 'sealed' })).status, 500);
  await put(lee, 'sealed', 'again');
});

test('a receipt of a call for a consumer is listed only for that consumer, and contains a digest instead of the subject', async () => {
  const { body } = await send<ConsumerReceiptPage>(kim, 'receipts.list', { limit: 100 });
  assert.ok(body.data.length > 3);
  assert.deepEqual([...new Set(body.data.map(({ operationId }) => operationId))].sort(), ['memory.get', 'memory.put']);
  assert.equal(body.data[0]?.agent.name, 'Shop agent');
  const id = body.data[0]?.id ?? assert.fail();
  const receiptResponse = await send<ConsumerReceipt>(kim, 'receipts.get', { id });
  const claims = JSON.parse(Buffer.from(receiptResponse.body.receipt.split('.')[1] ?? '', 'base64url').toString());
  assert.deepEqual([claims.sub, claims.berth.endUser.providerId], [`invocation:${id}`, 'hosted']);
  assert.match(claims.berth.endUser.subjectDigest, /^hmac:[0-9a-f]{64}$/);
  assert.ok(!receiptResponse.body.receipt.includes(kim.consumer.subject));
  assert.deepEqual(refusalOf(await send(lee, 'receipts.get', { id })), [404, 'not_found']);
  assert.equal((await send<ConsumerReceiptPage>(lee, 'receipts.list')).body.data.length, 0);
});

test('a consumer can list their consumer sessions with the current session marked, and can end another session immediately', async () => {
  const otherSignIn = await lab.signIn('kim@example.com');
  const listResponse = await send<ConsumerDevices>(kim, 'session.list');
  assert.deepEqual(
    listResponse.body.data.map(({ isThis }) => isThis),
    [false, true],
  );
  const id = listResponse.body.data[0]?.id ?? assert.fail();
  assert.deepEqual(refusalOf(await send(lee, 'session.endOne', { id })), [404, 'not_found']);
  assert.equal((await send<ConsumerDevices>(kim, 'session.endOne', { id })).body.data.length, 1);
  assert.equal((await send(otherSignIn, 'session.get')).status, 401);
});

async function exportProfile(who: SignedInConsumer): Promise<Map<string, string>> {
  const path = `/v1/consumer/applications/${lab.appId}/providers/hosted/profile.export`;
  const headers = { authorization: `Bearer ${who.accessToken}`, 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: '{}' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/zip');
  const zip = await yauzl.fromBufferPromise(Buffer.from(await response.arrayBuffer()));
  const files = new Map<string, string>();
  for await (const entry of zip.eachEntry()) {
    const chunks: Buffer[] = [];
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk);
    files.set(entry.fileName, Buffer.concat(chunks).toString());
  }
  return files;
}

test('the profile export of a consumer contains all data of the consumer and no data of other consumers, and requires a recent proof of identity', async () => {
  const max = await lab.signIn('max@example.com');
  for (let n = 0; n < 120; n += 1)
    await sql(
      `insert into consumer_consents (id, consumer_id, patterns, access, created_at) values (gen_random_uuid(), $1, '{a}', 'read', now())`,
      [lee.consumer.id],
    );
  await send(max, 'profile.update', { displayName: 'Max', metadata: { tier: 'gold' } });
  const keys = Array.from({ length: 103 }, (_, n) => `item.${String(n).padStart(3, '0')}`);
  const writeResponses = await Promise.all(keys.map(key => put(max, key, `value of ${key}`)));
  assert.ok(writeResponses.every(({ status }) => status === 200));
  const { id } = await consent(max, ['item.*']);
  const readResponse = await getAsAgent(max, 'item.000');
  const files = await exportProfile(max);
  const file = (name: string) => JSON.parse(files.get(name) ?? assert.fail([...files.keys()].join(' ')));
  assert.deepEqual([file('profile.json').displayName, file('profile.json').metadata], ['Max', { tier: 'gold' }]);
  assert.deepEqual(
    file('consents.json').data.map((one: Consent) => one.id),
    [id],
  );
  assert.equal(file('sessions.json').data.length, 1);
  for (const key of keys) assert.equal(file(`memory/${key}.json`).value, `value of ${key}`);
  assert.equal(file(`receipts/${readResponse.body.id}.json`).operationId, 'memory.get');
  assert.match(files.get(`receipts/${readResponse.body.id}.jws`) ?? '', /^ey/);
  const exportedText = [...files.values()].join('\n');
  for (const foreign of [kim.consumer.id, lee.consumer.id, kim.consumer.subject, 'kim@example.com', 'Ring 1'])
    assert.ok(!exportedText.includes(foreign), foreign);
  await server.advance(301_000);
  assert.deepEqual(refusalOf(await send(max, 'profile.export')), [401, 'insufficient_user_authentication']);
});

test('two consumers can be linked if both signed in recently, and their memory, receipts and names are then combined', async () => {
  const [main, second] = [await lab.signIn('main@example.com'), await lab.signIn('second@example.com')];
  await put(main, 'both', 'main');
  await put(second, 'both', 'second');
  await put(second, 'only.second', 'kept');
  await consent(second, ['*']);
  const readResponse = await getAsAgent(second, 'only.second');
  const link = (by: SignedInConsumer, accessToken: string) =>
    send<ConsumerProfile>(by, 'profile.link', { accessToken });
  assert.deepEqual(refusalOf(await link(main, main.accessToken)), [400, 'invalid_grant']);
  assert.deepEqual(refusalOf(await link(main, `bcs_${'x'.repeat(49)}`)), [400, 'invalid_grant']);
  const conflictResponse = await link(main, second.accessToken);
  assert.deepEqual(
    [refusalOf(conflictResponse), conflictResponse.body.details],
    [[409, 'name_taken'], { keys: ['both'] }],
    conflictResponse.text,
  );
  assert.equal((await send(second, 'session.get')).status, 200); // The refused link changed nothing.
  await send(main, 'memory.delete', { key: 'both' });
  const linkResponse = await link(main, second.accessToken);
  assert.deepEqual([linkResponse.status, linkResponse.body.linked], [200, [endUserOf(second)]], linkResponse.text);
  assert.equal((await send(second, 'session.get')).status, 401);
  const linkedTokens = await lab.signIn('second@example.com');
  assert.equal(linkedTokens.consumer.id, main.consumer.id);
  assert.equal((await send<MemoryItem>(linkedTokens, 'memory.get', { key: 'only.second' })).body.value, 'kept');
  assert.deepEqual(
    (await send<ConsumerReceiptPage>(main, 'receipts.list')).body.data.map(({ id }) => id),
    [readResponse.body.id],
  );
  // The consent was given for the memory of `second` before the link. After `main` gives consent, agents may use the
  // name of either consumer.
  assert.equal((await getAsAgent(second, 'only.second')).status, 403);
  await consent(main, ['*']);
  assert.equal((await getAsAgent(second, 'both')).body.status, 'succeeded');
  await server.advance(301_000);
  const staleTokens = await lab.signIn('third@example.com');
  assert.deepEqual(refusalOf(await link(main, staleTokens.accessToken)), [401, 'insufficient_user_authentication']);
  const freshTokens = await lab.signIn('main@example.com');
  assert.deepEqual(refusalOf(await link(freshTokens, linkedTokens.accessToken)), [400, 'invalid_grant']);
  assert.equal((await send(freshTokens, 'profile.delete')).status, 202);
  const anew = await lab.signIn('second@example.com');
  assert.notEqual(anew.consumer.id, main.consumer.id);
});

test('concurrent requests for a consumer who is being linked leave no consumer session, memory item or consent of that consumer', async () => {
  const [main, second] = [await lab.signIn('pat@example.com'), await lab.signIn('pat@work.example')];
  await put(second, 'first', 1);
  const pendingSignIn = await lab.startSignIn();
  const unusedRedirect = await lab.finish(pendingSignIn, 'pat@work.example');
  const lateRequests = Array.from({ length: 4 }, (_, n) => [
    put(second, `late.${n}`, 'x'),
    send(second, 'memory.consent', { keyId: '*', keys: ['a'], access: 'read' }),
  ]);
  const [linked] = await Promise.all([
    send(main, 'profile.link', { accessToken: second.accessToken }),
    ...lateRequests.flat(),
  ]);
  assert.equal(linked.status, 200, linked.text);
  assert.deepEqual(refusalOf((await lab.exchange(pendingSignIn, unusedRedirect)) as never), [400, 'invalid_grant']);
  const { refreshToken } = second;
  assert.deepEqual(refusalOf(await lab.send<ErrorBody>('session.refresh', { refreshToken })), [400, 'invalid_grant']);
  const remainingRows = await sql(
    `select 'item' what from consumer_memory where consumer_id = $1
     union all select 'consent' from consumer_consents where consumer_id = $1
     union all select 'session' from consumer_sessions where consumer_id = $1 and revoked_at is null`,
    [second.consumer.id],
  );
  assert.deepEqual(remainingRows, []);
  assert.equal((await send<MemoryItem>(main, 'memory.get', { key: 'first' })).body.value, 1);
});

test('a deleted consumer leaves no memory, key, consent or personal data', async () => {
  const goneConsumer = await lab.signIn('gone@example.com');
  await send(goneConsumer, 'profile.update', { displayName: 'Gone Person' });
  await put(goneConsumer, 'private', 'text');
  await consent(goneConsumer, ['*'], { keyId: '*' });
  const readResponse = await getAsAgent(goneConsumer, 'private');
  assert.equal(readResponse.body.status, 'succeeded', readResponse.text);
  assert.equal((await send(goneConsumer, 'profile.delete')).status, 202);
  assert.equal((await send(goneConsumer, 'memory.get', { key: 'private' })).status, 401);
  const responseAfter = await getAsAgent(goneConsumer, 'private');
  assert.deepEqual(refusalOf(responseAfter as never), [400, 'invalid_request'], responseAfter.text);
  const remainingRows = await sql(
    `select 'memory' what from consumer_memory where consumer_id = $1
     union all select 'consent' from consumer_consents where consumer_id = $1
     union all select 'key' from vault_keys where owner = $1
     union all select 'session' from consumer_sessions where consumer_id = $1 and revoked_at is null
     union all select 'person' from consumers where id = $1 and (email is not null or display_name is not null)`,
    [goneConsumer.consumer.id],
  );
  assert.deepEqual(remainingRows, []);
  // The receipt is kept for the agent, and does not name the consumer.
  const { body } = await server.api<Invocation>('GET', agentPath(server, `invocations/${readResponse.body.id}`), {
    key: agent.key,
  });
  assert.match(body.receipt ?? '', /^ey/);
  assert.ok(!JSON.stringify(body).includes(goneConsumer.consumer.subject));
});

test('concurrent writes during the deletion of a consumer leave no items or consents', async () => {
  for (let round = 0; round < 3; round += 1) {
    const goneConsumer = await lab.signIn(`race${round}@example.com`);
    await put(goneConsumer, 'first', 1);
    const writes = Array.from({ length: 6 }, (_, n) => put(goneConsumer, `late.${n}`, 'x'));
    const consents = [1, 2].map(() =>
      send(goneConsumer, 'memory.consent', { keyId: '*', keys: ['a'], access: 'read' }),
    );
    const [deleted] = await Promise.all([send(goneConsumer, 'profile.delete'), ...writes, ...consents]);
    assert.equal(deleted.status, 202, deleted.text);
    const remainingRows = await sql(
      `select key from consumer_memory where consumer_id = $1
       union all select 'consent' from consumer_consents where consumer_id = $1`,
      [goneConsumer.consumer.id],
    );
    assert.deepEqual(remainingRows, []);
  }
});

test('the audit log records exports and changes to memory and consents, without the keys or values of items', async () => {
  for (const action of [
    'memory.written',
    'memory.deleted',
    'memory.consented',
    'memory.consent_revoked',
    'consumer.exported',
  ]) {
    const { body, text } = await owner.get<{ data: ReadonlyArray<{ actor: { kind: string } }> }>(
      `/v1/applications/${lab.appId}/audit?action=${action}`,
    );
    assert.ok(body.data.length > 0, action);
    for (const word of ['address', 'secret', 'Vienna']) assert.ok(!text.includes(word), word);
  }
  const agentEntries = await owner.get<{ data: readonly unknown[] }>(
    `/v1/applications/${lab.appId}/audit?action=memory.written&actor=${agent.id}`,
  );
  assert.ok(agentEntries.body.data.length > 0);
});

test('events refer to memory, consents and consumers only by id', async () => {
  const { body, text } = await server.api<{ data: ReadonlyArray<{ type: string; detail: object }> }>(
    'GET',
    '/v1/browsers/events?type=memory.written,memory.consented,memory.consent_revoked,consumer.linked&limit=1000',
  );
  assert.deepEqual(
    [...new Set(body.data.map(({ type }) => type))].sort(),
    ['consumer.linked', 'memory.consent_revoked', 'memory.consented', 'memory.written'],
    text,
  );
  for (const word of ['address', 'secret', 'Vienna']) assert.ok(!text.includes(word), word);
});

test('a consumer cannot access memory, receipts, consumer sessions, Actions or consents through another application', async () => {
  const { body } = await owner.post<{ id: string }>('/v1/applications', { name: 'Other' });
  const otherLab = await ConsumerFixture.open(server, owner, body.id);
  const otherTokens = await otherLab.signIn('kim@example.com');
  const listResponse = await otherLab.send<MemoryPage>('memory.list', {}, otherTokens.accessToken);
  assert.deepEqual([listResponse.status, listResponse.body.data], [200, []]);
  const { body: tokens } = await lab.send<ConsumerTokens>('session.refresh', { refreshToken: lee.refreshToken });
  for (const name of ['memory.list', 'receipts.list', 'session.list', 'actions.list', 'memory.consents'])
    assert.equal((await otherLab.send(name, {}, tokens.accessToken)).status, 404, name);
});
