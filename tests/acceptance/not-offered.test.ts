// Checks that docs/not-offered.md is complete and correct. Every call of the official SDK must be in the OpenAPI
// document or in docs/not-offered.md, and each call listed there must get the documented response.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import { OPERATION_IDS, operation, pathsOf } from '../../contract/operations.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const DOCUMENT = readFileSync(join(CHECKOUT, 'docs/not-offered.md'), 'utf8');
const ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE } });

/** The rows of the first table: a method, a path, and whether the row applies to all paths below it. */
const LISTED_CALLS = [...DOCUMENT.matchAll(/^\| `([A-Z]+) (\/\S+)`( and all below it)? \|/gm)].map(
  ([, method = '', path = '', below]) => ({
    method,
    path,
    root: path.split('/').slice(0, 3).join('/'),
    isTree: Boolean(below),
  }),
);

/** Method and path of each request in the SDK's code, with `{}` in place of ids. */
const SDK_CALLS = globSync('node_modules/@browserbasehq/sdk/resources/**/*.js', { cwd: CHECKOUT }).flatMap(file =>
  [
    ...readFileSync(join(CHECKOUT, file), 'utf8').matchAll(/_client\.(get|post|put|patch|delete)\([`'](\/[^`']+)[`']/g),
  ].map(([, method = '', path = '']) => `${method.toUpperCase()} ${path.replaceAll(/\$\{[^}]+\}/g, '{}')}`),
);

test('every API call of the official client is supported or listed in docs/not-offered.md', () => {
  assert.ok(SDK_CALLS.length > 40);
  const offeredCalls = new Set(
    OPERATION_IDS.flatMap(id =>
      pathsOf(id, true).map(({ path }) => `${operation(id).method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`),
    ),
  );
  const isListed = (path: string): boolean =>
    LISTED_CALLS.some(one =>
      one.isTree ? `${path}/`.startsWith(`${one.root}/`) : one.path.replaceAll(/\{[^}]+\}/g, '{}') === path,
    );
  const unlistedCalls = [...new Set(SDK_CALLS)].filter(call => {
    const path = call.slice(call.indexOf(' ') + 1);
    return !offeredCalls.has(call) && !isListed(path);
  });
  assert.deepEqual(unlistedCalls, []);
});

for (const { method, path } of LISTED_CALLS)
  test(`the call ${method} ${path} gets the response that docs/not-offered.md describes`, async () => {
    const response = await server.api<ErrorBody & { value?: { error: string } }>(method, path.replaceAll('{id}', ID), {
      ...(method === 'POST' ? { body: {} } : {}),
    });
    if (path.includes('webdriver'))
      assert.deepEqual([response.status, response.body.value?.error], [501, 'unsupported operation']);
    else if (method === 'PUT') assert.deepEqual([response.status, response.body.code], [405, 'method_not_allowed']);
    else assert.deepEqual([response.status, response.body.code], [404, 'route_not_found']);
  });

test('settings that are not offered cause a warning or a refusal, as docs/not-offered.md describes', async () => {
  const unofferedSettings = {
    solveCaptchas: true,
    captchaImageSelector: '#a',
    captchaInputSelector: '#b',
    fingerprint: { browsers: [] },
  };
  const session = await server.createSession({ browserSettings: unofferedSettings, region: 'us-east-1' });
  const warnings = new Map(session.warnings?.map(({ path, code }) => [path, code]));
  assert.deepEqual(Object.fromEntries(warnings), {
    region: 'region_not_local',
    'browserSettings.solveCaptchas': 'captcha_not_supported',
    'browserSettings.captchaImageSelector': 'captcha_not_supported',
    'browserSettings.captchaInputSelector': 'captcha_not_supported',
    'browserSettings.fingerprint': 'ignored',
  });
  await server.release(session.id);
  for (const name of ['verified', 'advancedStealth']) {
    const body = { browserSettings: { [name]: true } };
    const refusal = await server.api('POST', '/v1/browsers/sessions', { body });
    assert.deepEqual([refusal.status, refusal.body.code], [422, 'feature_unavailable']);
    const createResponse = await server.api<{ id: string }>('POST', '/v1/sessions', { body });
    assert.ok(createResponse.status < 300, createResponse.text);
    await server.release(createResponse.body.id);
  }
});
