// Every API operation with which agents discover and invoke operations is tried with each single scope of a key, with
// keys of other applications, and with keys without a grant. API operations and scopes come from the contract.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { OPERATION_IDS, type OperationId, operation } from '../../contract/operations.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { agentPath, issueAgentKey } from '../harness/operations.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const TESTED_OPERATIONS = OPERATION_IDS.filter(id => {
  const { tag, credential } = operation(id);
  return credential === 'agentKey' && (tag === 'Operations' || tag === 'Invocations');
});
const OPERATION_ID = 'orders.look';

const upstream = await openUpstream();
upstream.respondTo('/orders/slow', () => {}); // No response is sent.
upstream.respondTo('/orders/quick', (_, response) => void response.end('{}'));
const server = await startServer({ env: upstream.settings });
await liftLimits(server);
const token = await createOwnerToken(server);
const owner = await Owner.open(server);
await owner.publish(OPERATION_ID, { ...cancelOrderOperation(upstream), effect: 'read' });

const INVOKE_SCOPE = 'operations:invoke';

/** Maps each scope to a key that has only this scope. */
const keys = new Map<string, string>();

before(async () => {
  for (const scope of AGENT_KEY_SCOPES)
    keys.set(scope, (await issueAgentKey(server, { scopes: [scope], grants: [{ operationId: OPERATION_ID }] })).key);
});

/** Starts an invocation with the key that has the scope to invoke. Returns the id of the running invocation. */
async function startInvocation(): Promise<string> {
  const { body, status, text } = await server.api<Invocation>('POST', agentPath(server, pathTo('invoke')), {
    ...{
      key: keys.get(INVOKE_SCOPE) ?? null,
      body: { input: { orderId: 'slow' } },
      headers: { prefer: 'respond-async' },
    },
  });
  assert.equal(status, 202, text);
  return body.id;
}

const pathTo = (verb: string): string => `operations/${OPERATION_ID}/${verb}`;

function ask(id: OperationId, key: string, invocationId: string, applicationId = server.applicationId) {
  const { method, path: pattern, body } = operation(id);
  const values: Readonly<Record<string, string>> = {
    appId: applicationId,
    operationId: OPERATION_ID,
    id: invocationId,
  };
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? assert.fail(`${id}: ${name}`));
  return server.api<ErrorBody>(method, path, { key, ...(body ? { body: { input: { orderId: 'quick' } } } : {}) });
}

for (const id of TESTED_OPERATIONS)
  test(`${id}: keys with each single scope and keys of another application get the responses that the contract specifies`, async () => {
    const { scopes = assert.fail(`the contract specifies no scope for ${id}`) } = operation(id);
    const otherApplication = await createOtherApplicationKey();
    const invocationId = await startInvocation();
    for (const [scope, key] of keys) {
      const foreignResponse = await ask(id, otherApplication.key, invocationId);
      assert.deepEqual([foreignResponse.status, foreignResponse.body.code], [404, 'not_found'], foreignResponse.text);
      const hasId = operation(id).path.includes('{id}');
      if (hasId) {
        const ownApplicationResponse = await ask(
          id,
          otherApplication.key,
          invocationId,
          otherApplication.applicationId,
        );
        assert.deepEqual(
          [ownApplicationResponse.status, ownApplicationResponse.body.code],
          [404, 'not_found'],
          ownApplicationResponse.text,
        );
      }
      const { status, body, text } = await ask(id, key, invocationId);
      // Keys see only their own invocations.
      if (scopes.includes(scope) && hasId && scope !== INVOKE_SCOPE) assert.equal(status, 404, `${scope}: ${text}`);
      else if (scopes.includes(scope)) assert.ok(status === 200 || status === 202, `${scope}: ${text}`);
      else assert.deepEqual([status, body.code], [403, 'permission_denied'], `${scope}: ${text}`);
    }
  });

test('a key can neither see nor call an operation for which it has no grant', async () => {
  const { key } = await issueAgentKey(server, { grants: [{ operationId: 'browser.pdf' }] });
  const listResponse = await server.api<{ data: Array<{ id: string }> }>('GET', agentPath(server, 'operations'), {
    key,
  });
  assert.deepEqual(
    listResponse.body.data.map(({ id }) => id),
    ['browser.pdf'],
  );
  assert.equal((await ask('readAgentOperation', key, '')).status, 404);
  const invokeResponse = await ask('invokeOperation', key, '');
  assert.deepEqual(
    [invokeResponse.status, invokeResponse.body.code],
    [403, 'operation_not_granted'],
    invokeResponse.text,
  );
});

async function createOtherApplicationKey(): Promise<{ key: string; applicationId: string }> {
  const { body } = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  const scopes = AGENT_KEY_SCOPES;
  const grants = [{ operationId: '*', effect: 'read' }];
  const keyResponse = await server.api<{ key: string }>('POST', `/v1/applications/${body.id}/agent-keys`, {
    ...{ key: token, body: { name: 'foreign', scopes, grants } },
  });
  assert.equal(keyResponse.status, 201, keyResponse.text);
  return { key: keyResponse.body.key, applicationId: body.id };
}
