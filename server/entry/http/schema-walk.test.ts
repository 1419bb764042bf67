// Tests the messages about invalid values, with the schema of the create request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CreateAgentKey } from '../../../contract/agent-keys.ts';
import { OPERATION_IDS, operation } from '../../../contract/operations.ts';
import { CreateSession } from '../../../contract/sessions.ts';
import { findIssues, unknownFields } from './schema-walk.ts';
import { validatorOf } from './validate.ts';

const WRONG_VALUES: ReadonlyArray<readonly [unknown, string, string]> = [
  [{ timeout: '900' }, 'timeout', 'is "900"; expected a whole number from 60 to 21600'],
  [{ timeout: 59 }, 'timeout', 'is 59; expected a whole number from 60 to 21600'],
  [{ timeout: 60.5 }, 'timeout', 'is 60.5; expected a whole number from 60 to 21600'],
  [{ keepAlive: 'yes' }, 'keepAlive', 'is "yes"; expected true or false'],
  [{ keepAlive: null }, 'keepAlive', 'is null; expected true or false'],
  [{ userMetadata: [] }, 'userMetadata', 'is a list of 0; expected an object'],
  [{ extensionId: 'x' }, 'extensionId', 'is "x"; expected a UUID'],
  [{ browserSettings: 3 }, 'browserSettings', 'is 3; expected an object'],
  [
    { browserSettings: { viewport: { width: 1e9 } } },
    'browserSettings.viewport.width',
    'is 1000000000; expected a whole number from 200 to 3840',
  ],
  [
    { browserSettings: { os: 'bsd' } },
    'browserSettings.os',
    'is "bsd"; expected one of windows, mac, linux, mobile, tablet',
  ],
  [{ browserSettings: { context: {} } }, 'browserSettings.context.id', 'is missing; expected a UUID'],
  [{ proxies: 'on' }, 'proxies', 'is "on"; expected true or false or a list of at most 20 entries'],
  [
    { proxies: [{ type: 'external' }] },
    'proxies[0].server',
    'is missing; expected a string matching ^(https?|socks5)://',
  ],
  [{ allowedDomains: ['a.test', 4] }, 'allowedDomains[1]', 'is 4; expected a string of 1 to 253 characters'],
  [[], '', 'is a list of 0; expected an object'],
];

for (const [value, path, message] of WRONG_VALUES)
  test(`explains why ${JSON.stringify(value)} is invalid`, () => {
    assert.deepEqual(findIssues(CreateSession, value), [{ path, message }]);
    assert.deepEqual(validatorOf(CreateSession)(value), [{ path, message }]);
  });

test('reports every invalid field', () =>
  assert.deepEqual(
    findIssues(CreateSession, { timeout: 1, keepAlive: 1 }).map(({ path }) => path),
    ['timeout', 'keepAlive'],
  ));

test('reports an invalid time and an unknown scope', () =>
  assert.deepEqual(
    validatorOf(CreateAgentKey)({ name: 'a', expiresAt: 'tomorrow', scopes: ['browsers:fly'] }).map(({ path }) => path),
    ['scopes[0]', 'expiresAt'],
  ));

test('finds unknown fields at every depth, including in lists', () =>
  assert.deepEqual(
    unknownFields(CreateSession, {
      timeOut: 1,
      userMetadata: { anything: 1 },
      browserSettings: { viewport: { widht: 1 }, toString: 1 },
      proxies: [{ type: 'external', server: 'http://a.test', sever: 1 }],
    }),
    ['timeOut', 'browserSettings.viewport.widht', 'browserSettings.toString', 'proxies[0].sever'],
  ));

test('the example of every operation is valid and has no unknown fields', () => {
  for (const id of OPERATION_IDS) {
    const { body, bodyExample } = operation(id);
    if (!body) continue;
    assert.deepEqual(validatorOf(body)(bodyExample ?? {}), [], id);
    assert.deepEqual(unknownFields(body, bodyExample ?? {}), [], id);
  }
});
