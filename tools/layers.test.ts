import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLayers, judge } from './layers.ts';

const REFUSED_IMPORTS: ReadonlyArray<readonly [from: string, specifier: string, typeOnly?: boolean]> = [
  ['contract/sessions.ts', '../server/kit/ids.ts', true],
  ['contract/sessions.ts', 'node:fs'],
  ['contract/sessions.ts', 'fastify'],
  ['server/kit/log.ts', '../config.ts'],
  ['server/kit/log.ts', 'pino'],
  ['server/engines/browser/mux.ts', '../slots/slots.ts', true],
  ['server/engines/browser/mux.ts', '../../domain/sessions/session.ts', true],
  ['server/engines/browser/mux.ts', '../../../contract/sessions.ts', true],
  ['server/domain/sessions/create.ts', '../../engines/slots/slots.ts'],
  ['server/domain/sessions/create.ts', '../../entry/http/server.ts', true],
  ['server/domain/sessions/create.ts', '../../parts.ts', true],
  ['server/domain/sessions/create.ts', 'fastify'],
  ['server/entry/http/server.ts', '../../engines/store/store.ts', true],
  ['server/entry/http/server.ts', '../cdp/upgrade.ts'],
  ['server/entry/http/server.ts', '../../main.ts'],
  ['cli/berth.ts', '../server/parts.ts'],
  ['cli/berth.ts', '../server/domain/identity/keys.ts'],
  ['tests/acceptance/create.test.ts', '../../server/kit/wait.ts'],
  ['tests/harness/server.ts', '../engines/store.test.ts'],
  ['server/kit/wait.ts', './log.test.ts'],
  ['server/kit/wait.ts', './log'],
  ['server/things/log.ts', '../kit/log.ts'],
  ['server/domain/contexts/contexts.ts', '../../wiring/contexts.ts', true],
  ['server/wiring/contexts.ts', '../parts.ts', true],
  ['server/local.ts', '../cli/run.ts'],
  ['console/src/api/receipts.ts', '../../../sdk/verify-receipt.ts'],
  ['sdk/receipt-rules.ts', 'node:crypto'],
  ['sdk/receipt-rules.ts', './verify-webhook.ts'],
];

const ALLOWED_IMPORTS: ReadonlyArray<readonly [from: string, specifier: string, typeOnly?: boolean]> = [
  ['contract/sessions.ts', './common.ts'],
  ['contract/sessions.ts', 'typebox'],
  ['contract/sessions.ts', 'typebox/value'],
  ['server/kit/log.ts', 'node:fs'],
  ['server/engines/browser/mux.ts', './pipe.ts'],
  ['server/engines/store/tables/keys.ts', '../store.ts'],
  ['server/engines/store/open-store.ts', 'kysely'],
  ['server/domain/sessions/create.ts', '../../engines/slots/slots.ts', true],
  ['server/domain/sessions/create.ts', '../identity/caller.ts'],
  ['server/domain/sessions/create.ts', '../faults.ts'],
  ['server/entry/http/server.ts', '../../domain/sessions/create.ts'],
  ['server/entry/http/server.ts', 'fastify'],
  ['server/parts.ts', './engines/store/open-store.ts'],
  ['server/main.ts', './parts.ts'],
  ['server/wiring/contexts.ts', '../engines/profiles/profiles.ts'],
  ['server/parts.ts', './wiring/contexts.ts'],
  ['cli/berth.ts', '../server/local.ts'],
  ['console/src/api/receipts.ts', '../../../sdk/verify-receipt-in-browser.ts'],
  ['sdk/receipt-rules.ts', './canonical-json.ts'],
  ['sdk/receipt-rules.ts', './approval-rules.ts'],
  ['server/domain/sessions/create.test.ts', '../../engines/store/open-store.ts'],
  ['tests/engines/store.test.ts', '../../server/engines/store/open-store.ts'],
  ['tests/acceptance/create.test.ts', '../harness/server.ts'],
];

for (const [from, specifier, typeOnly = false] of REFUSED_IMPORTS)
  test(`refuses the import of ${typeOnly ? 'types of ' : ''}${specifier} in ${from}`, () => {
    assert.notEqual(judge(from, specifier, typeOnly), undefined);
  });

for (const [from, specifier, typeOnly = false] of ALLOWED_IMPORTS)
  test(`allows the import of ${typeOnly ? 'types of ' : ''}${specifier} in ${from}`, () => {
    assert.equal(judge(from, specifier, typeOnly), undefined);
  });

test('a violation contains the line, the problem and the remedy', () => {
  const text = "// Owns it.\nimport { slots } from '../../engines/slots/slots.ts';\n";
  const [violation, ...others] = checkLayers([{ path: 'server/domain/sessions/create.ts', text }]);
  assert.equal(others.length, 0);
  assert.equal(violation?.line, 2);
  assert.match(violation?.what ?? '', /types only/);
  assert.match(violation?.remedy ?? '', /parameter/);
});
