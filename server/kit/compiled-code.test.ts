import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test('a cache of compiled code that is only for threads is not used by the process itself, but is passed to its threads', () => {
  const program = `
    const { cacheCompiledCode, compiledCodeEnv } = await import(process.argv[1]);
    cacheCompiledCode('/tmp/compiled', { isForThreadsOnly: true });
    const { getCompileCacheDir } = process.getBuiltinModule('node:module');
    console.log(JSON.stringify([getCompileCacheDir() ?? null, compiledCodeEnv()]));
  `;
  const module = import.meta.resolve('./compiled-code.ts');
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', program, module], { env: {} });
  assert.deepEqual(JSON.parse(output.toString()), [null, { NODE_COMPILE_CACHE: '/tmp/compiled' }]);
});
