import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { digestOfSources } from './web-digest.ts';

test('the digest depends on the contract and its operations, but not on tests, generated files or server files', t => {
  const root = mkdtempSync(join(tmpdir(), 'berth-digest-'));
  t.after(() => rmSync(root, { recursive: true }));
  const digestAfterWriting = (file: string): string => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), 'text');
    return digestOfSources(root);
  };
  const first = digestAfterWriting('contract/sessions.ts');
  const second = digestAfterWriting('contract/operations/sessions.ts');
  assert.notEqual(second, first);
  for (const other of ['contract/operations.test.ts', 'contract/generated/openapi.yaml', 'server/main.ts'])
    assert.equal(digestAfterWriting(other), second, other);
});
