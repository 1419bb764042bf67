// Every operation refuses every kind of credential that it does not accept, and every request without a credential. The
// cases are generated from the operations, so new operations are included.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Credential } from '../../contract/operation.ts';
import { OPERATION_IDS, type OperationId, operation, pathsOf } from '../../contract/operations.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { DeviceFixture } from '../harness/device.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';

const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const MISTYPED_ENDING = `${'x'.repeat(6)}`;

const server = await startServer();
const devices = await DeviceFixture.open(server);

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

const ACCEPTED_KINDS: Readonly<Record<Credential, readonly Kind[]>> = {
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

const headersByKind = new Map<Kind, Headers>();

const bearer = (credential: string): Headers => ({ authorization: `Bearer ${credential}` });

before(async () => {
  const ownerToken = await createOwnerToken(server);
  const issueRequest = { key: ownerToken, body: { name: 'revoked', scopes: ['applications:read'] } };
  const revokedToken = (await server.api<{ id: string; token: string }>('POST', '/v1/account/tokens', issueRequest))
    .body;
  await server.api('DELETE', `/v1/account/tokens/${revokedToken.id}`, { key: ownerToken });
  const startedDevice = await devices.start();
  await devices.approve(startedDevice);
  const { access_token: developerToken } = await devices.collectToken(startedDevice);
  const { device_code: code } = await devices.start();
  headersByKind.set('none', {});
  headersByKind.set('agent key', bearer(server.key));
  headersByKind.set('personal token', bearer(ownerToken));
  headersByKind.set('developer token', bearer(developerToken));
  headersByKind.set('cookie', devices.owner.headers);
  headersByKind.set('device code', bearer(code));
  const lab = await ConsumerFixture.open(server, devices.owner);
  headersByKind.set('consumer session', bearer((await lab.signIn('kim@example.com')).accessToken));
  headersByKind.set('unknown', bearer(`${ownerToken.slice(0, -6)}${MISTYPED_ENDING}`));
  headersByKind.set('revoked', bearer(revokedToken.token));
});

const pathOf = (id: OperationId): string =>
  (pathsOf(id, true)[0]?.path ?? '').replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === 'appId' ? server.applicationId : UNKNOWN_ID,
  );

for (const id of OPERATION_IDS.filter(one => ACCEPTED_KINDS[operation(one).credential].length > 0))
  test(`${id} refuses every kind of credential that it does not accept`, async () => {
    const { method, credential } = operation(id);
    const wrongCredentials = [...headersByKind].filter(([kind]) => !ACCEPTED_KINDS[credential].includes(kind));
    const responses = await Promise.all(
      wrongCredentials.map(async ([kind, headers]) => {
        const { status, body } = await server.api<ErrorBody>(method, pathOf(id), { key: null, headers });
        return `${kind}: ${status} ${body.code}`;
      }),
    );
    const expectedResponses = wrongCredentials.map(
      ([kind]) => `${kind}: 401 ${kind === 'none' ? 'missing' : 'invalid'}_credentials`,
    );
    // An operation for programs does not accept a cookie as a credential, so a request with only a cookie counts as a
    // request without a credential.
    const normalizedResponses = responses.map(response =>
      response.replace('cookie: 401 missing', 'cookie: 401 invalid'),
    );
    assert.deepEqual(normalizedResponses, expectedResponses);
  });

test('the tables of this test cover every kind of credential that operations accept', () => {
  const kinds = new Set(OPERATION_IDS.map(id => operation(id).credential));
  assert.deepEqual(
    [...kinds].filter(kind => !(kind in ACCEPTED_KINDS)),
    [],
  );
  assert.deepEqual(
    Object.values(ACCEPTED_KINDS)
      .flat()
      .filter(kind => !headersByKind.has(kind)),
    [],
  );
});
