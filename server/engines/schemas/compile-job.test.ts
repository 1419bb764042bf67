import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { WorkerPool, WorkFailed } from '../../kit/worker-pool.ts';
import { COMPILE } from './jobs.ts';

const workers = new WorkerPool();
after(() => workers.close());

/**
 * Shorter than the limit of `COMPILE`, to keep the tests fast. The patterns that are refused here would run for hours.
 */
const COMPILE_LIMIT_MS = 400;

const compilePattern = (pattern: string) =>
  workers.run(
    { ...COMPILE, limitMs: COMPILE_LIMIT_MS },
    { schemas: { inputSchema: { properties: { a: { pattern } } } } },
    { owner: 'test' },
  );

for (const pattern of [
  '^A-[0-9]{1,9}$',
  '^[a-z][a-z0-9]*([._-][a-z0-9]+)*$',
  '^(?:[a-z]+\\.)+com$',
  '^.{1,200}$',
  '^\\p{L}+( \\p{L}+)*$',
])
  test(`accepts the pattern ${pattern}`, async () => {
    assert.deepEqual(await compilePattern(pattern), {});
  });

for (const pattern of [
  '(a+)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '^(a|a)*$',
  '^([a-zA-Z0-9]+)*$',
  '(x+x+)+y',
  '^(\\d+)*\\.$',
])
  test(`compiling a schema with the pattern ${pattern} takes too long and is stopped`, async () => {
    await assert.rejects(
      compilePattern(pattern),
      (error: unknown) => error instanceof WorkFailed && error.why === 'too_long',
    );
  });

test('reports which schema cannot be compiled', async () => {
  const compileOutput = await workers.run(
    COMPILE,
    { schemas: { outputSchema: { type: 'nothing' } } },
    { owner: 'test' },
  );
  assert.equal(compileOutput.path, 'outputSchema');
});
