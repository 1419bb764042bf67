import assert from 'node:assert/strict';
import { test } from 'node:test';
import { propertiesOf } from './openapi.ts';
import { errorsOf, isRepeatable, OPERATION_IDS, operation, optionalHeadersOf } from './operations.ts';
import { RESERVED_TOKEN_SCOPES, TOKEN_SCOPES } from './tokens.ts';

/** Fields of responses that grant access. */
const SECRET_FIELDS = ['key', 'token', 'signingKey', 'connectUrl', 'seleniumRemoteUrl', 'acceptUrl', 'claimUrl'];
/** Operations that return a session without its connect fields. */
const OPERATIONS_WITHOUT_CONNECT = ['updateSession'];

test('every repeatable operation declares the secret fields of its response', () => {
  for (const id of OPERATION_IDS.filter(isRepeatable)) {
    const responseSchemas = Object.values(operation(id).responses).flatMap(({ schema }) => (schema ? [schema] : []));
    const shownFields = responseSchemas
      .flatMap(schema => Object.keys(propertiesOf(schema)))
      .filter(name => SECRET_FIELDS.includes(name));
    const expectedFields = OPERATIONS_WITHOUT_CONNECT.includes(id) ? [] : shownFields;
    assert.deepEqual([...(operation(id).secretFields ?? [])].sort(), expectedFields.sort(), id);
  }
});

test('only POST operations for agent keys or accounts accept an idempotency key, and each operation declares the errors of its optional headers', () => {
  for (const id of OPERATION_IDS) {
    const { method, credential, mayWait, headers: ownHeaders } = operation(id);
    const headerNames = Object.keys({
      ...propertiesOf(optionalHeadersOf(id)),
      ...(ownHeaders && propertiesOf(ownHeaders)),
    });
    const takesIdempotencyKey = method === 'POST' && ['agentKey', 'account', 'agentKeyOrAccount'].includes(credential);
    assert.equal(headerNames.includes('idempotency-key'), takesIdempotencyKey, id);
    assert.equal(errorsOf(id).includes('idempotency_conflict'), takesIdempotencyKey, id);
    if (mayWait)
      for (const code of ['concurrency_limit', 'rate_limited', 'capacity'] as const)
        assert.ok(errorsOf(id).includes(code), `${id} ${code}`);
  }
});

test('the list of unused token scopes contains exactly the scopes that no account operation requires', () => {
  const accountOperationIds = OPERATION_IDS.filter(
    id => !['agentKey', 'consumer', 'public'].includes(operation(id).credential),
  );
  const requiredScopes = new Set(accountOperationIds.flatMap(id => [...(operation(id).scopes ?? [])]));
  assert.deepEqual(
    TOKEN_SCOPES.filter(scope => !requiredScopes.has(scope)),
    [...RESERVED_TOKEN_SCOPES],
  );
});
