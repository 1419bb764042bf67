import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkUnused } from './unused.ts';

const whatsOf = (texts: Readonly<Record<string, string>>): string[] =>
  checkUnused(Object.entries(texts).map(([path, text]) => ({ path, text }))).map(
    ({ path, line, what }) => `${path}:${line} ${what}`,
  );

test('reports an exported value that no other file names', () => {
  const keys = "// openKey is used\n\nexport const openKey = () => 'readKey';\nexport function readKey(): void {}\n";
  assert.deepEqual(whatsOf({ 'server/keys.ts': keys, 'server/user.ts': 'readKey();\n' }), [
    'server/keys.ts:3 no other file names openKey, which is exported',
  ]);
  assert.deepEqual(whatsOf({ 'contract/keys.ts': keys, 'sdk/keys.ts': keys.replaceAll('Key', 'Door') }), []);
});

const METRICS =
  'export interface Metrics {\n  readonly registry: Registry;\n  recordStart(seconds: number): void;\n}\n';
const POOL = 'interface PoolParts {\n  readonly onStart: (seconds: number) => void;\n  readonly clock: Clock;\n}\n';

test('reports a function of an interface that is declared and given, but never called', () => {
  const wiring = '  new Pool({ clock, onStart: metrics.recordStart });\n';
  assert.deepEqual(whatsOf({ 'server/metrics.ts': METRICS, 'server/pool.ts': POOL }), [
    'server/metrics.ts:3 nothing calls recordStart, which this interface declares',
    'server/pool.ts:2 nothing calls onStart, which this interface declares',
  ]);
  const uncalledOnStart = ['server/pool.ts:2 nothing calls onStart, which this interface declares'];
  assert.deepEqual(
    whatsOf({ 'server/metrics.ts': METRICS, 'server/wiring.ts': wiring, 'server/pool.ts': POOL }),
    uncalledOnStart,
  );
  assert.deepEqual(
    whatsOf({ 'server/wiring.ts': 'open({ onStart: this.#deps.onStart });\n', 'server/pool.ts': POOL }),
    uncalledOnStart,
  );
});

test('does not report a function that is called by name, or taken out of its object', () => {
  for (const call of [
    'this.#parts.onStart(1);\n',
    'const { clock, onStart: reportStart } = this.#parts;\n',
    'const open = ({ onStart, clock }: PoolParts) => onStart(1);\n',
    "type StartParts = Pick<PoolParts, 'onStart'>;\n",
  ])
    assert.deepEqual(whatsOf({ 'server/pool.ts': POOL + call }), [], call);
  assert.equal(whatsOf({ 'server/pool.ts': POOL, 'server/pool.test.ts': 'parts.onStart(1);\n' }).length, 1);
});
