// Every operation refuses every kind of credential that it does not accept, and a request without one. The cases are
// generated from the operations, so that new ones are included (platform contract 17, "common").
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Credential } from '../../contract/operation.ts';
import { OPERATION_IDS, type OperationId, operation, pathsOf } from '../../contract/operations.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { DeviceFixture } from '../harness/device.ts';
import { ownerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';

const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const MISTYPED = `${'x'.repeat(6)}`;

const server = await startServer();
const devices = await DeviceFixture.of(server);

type Kind =
  | 'none'
  | 'agent key'
  | 'personal token'
  | 'developer token'
  | 'cookie'
  | 'device code'
  | 'consumer session'
  | 'unknown'
  | 'revoked';
type Headers = Readonly<Record<string, string>>;

const TAKES: Readonly<Record<Credential, readonly Kind[]>> = {
  public: [],
  connect: [],
  agentKey: ['agent key'],
  account: ['personal token', 'developer token', 'cookie'],
  human: ['cookie'],
  deviceCode: ['device code'],
  consumer: ['consumer session'],
  agentKeyOrAccount: ['agent key', 'personal token', 'developer token', 'cookie'],
  handoffReader: ['agent key', 'personal token', 'developer token', 'cookie'],
  handoffClaimer: ['cookie'],
  // Lease tokens are covered by the tests of hand-offs.
  handoffLease: [],
};

const sent = new Map<Kind, Headers>();

const bearer = (credential: string): Headers => ({ authorization: `Bearer ${credential}` });

before(async () => {
  const owner = await ownerToken(server);
  const issue = { key: owner, body: { name: 'revoked', scopes: ['applications:read'] } };
  const revoked = (await server.api<{ id: string; token: string }>('POST', '/v1/account/tokens', issue)).body;
  await server.api('DELETE', `/v1/account/tokens/${revoked.id}`, { key: owner });
  const collected = await devices.start();
  await devices.approve(collected);
  const { access_token: developer } = await devices.collectToken(collected);
  const { device_code: code } = await devices.start();
  sent.set('none', {});
  sent.set('agent key', bearer(server.key));
  sent.set('personal token', bearer(owner));
  sent.set('developer token', bearer(developer));
  sent.set('cookie', devices.owner.headers);
  sent.set('device code', bearer(code));
  const lab = await ConsumerFixture.of(server, devices.owner);
  sent.set('consumer session', bearer((await lab.signIn('kim@example.com')).accessToken));
  sent.set('unknown', bearer(`${owner.slice(0, -6)}${MISTYPED}`));
  sent.set('revoked', bearer(revoked.token));
});

const pathOf = (id: OperationId): string =>
  (pathsOf(id, true)[0]?.path ?? '').replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === 'appId' ? server.applicationId : UNKNOWN_ID,
  );

for (const id of OPERATION_IDS.filter(one => TAKES[operation(one).credential].length > 0))
  test(`${id} refuses every kind of credential that it does not accept`, async () => {
    const { method, credential } = operation(id);
    const wrong = [...sent].filter(([kind]) => !TAKES[credential].includes(kind));
    const responses = await Promise.all(
      wrong.map(async ([kind, headers]) => {
        const { status, body } = await server.api<ErrorBody>(method, pathOf(id), { key: null, headers });
        return `${kind}: ${status} ${body.code}`;
      }),
    );
    const expected = wrong.map(([kind]) => `${kind}: 401 ${kind === 'none' ? 'missing' : 'invalid'}_credentials`);
    // For an operation for programs, a cookie is not a credential, so the request counts as one without a credential.
    const asNone = responses.map(response => response.replace('cookie: 401 missing', 'cookie: 401 invalid'));
    assert.deepEqual(asNone, expected);
  });

test('the table contains every kind of credential that operations accept', () => {
  const kinds = new Set(OPERATION_IDS.map(id => operation(id).credential));
  assert.deepEqual(
    [...kinds].filter(kind => !(kind in TAKES)),
    [],
  );
  assert.deepEqual(
    Object.values(TAKES)
      .flat()
      .filter(kind => !sent.has(kind)),
    [],
  );
});
