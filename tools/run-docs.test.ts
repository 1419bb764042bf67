import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runBlock, runnableBlocks } from './run-docs.ts';

const LIVE_SERVER = { url: 'http://127.0.0.1:9', key: 'bak_x' };

test('finds only marked blocks, each with its line', () => {
  const document = '# A\n\n```sh\nnot this\n```\n\n```sh run\necho a\n```\n\n```ts run\nlet b: number = 1;\n```\n';
  assert.deepEqual(runnableBlocks(document), [
    { language: 'sh', line: 7, text: 'echo a\n' },
    { language: 'ts', line: 11, text: 'let b: number = 1;\n' },
  ]);
});

test('runs a block with the address and the key of the live server', async () => {
  const sh = { language: 'sh', line: 1, text: 'echo "http://127.0.0.1:8080 $BERTH_KEY"' } as const;
  assert.equal(await runBlock(sh, LIVE_SERVER), 'http://127.0.0.1:9 bak_x\n');
  const ts = {
    language: 'ts',
    line: 1,
    text: 'const key: string = process.env.BERTH_KEY ?? "";\nconsole.log(key);',
  } as const;
  assert.equal(await runBlock(ts, LIVE_SERVER), 'bak_x\n');
});

test('rejects with the output of the block if the block fails', async () => {
  const block = { language: 'sh', line: 7, text: 'echo before; false; echo after' } as const;
  await assert.rejects(runBlock(block, LIVE_SERVER), /line 7 failed with exit code 1:\nbefore\n$/);
});

test('a TypeScript block can import packages of the checkout', async () => {
  const block = {
    language: 'ts',
    line: 1,
    text: "import { chromium } from 'playwright-core';\nconsole.log(typeof chromium);",
  } as const;
  assert.equal(await runBlock(block, LIVE_SERVER), 'object\n');
});
