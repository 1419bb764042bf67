// Clients and observers that disconnect while the browser is being closed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { work } from '../../server/engines/browser/envelope-job.ts';
import { type Log, silentLog } from '../../server/kit/log.ts';
import { startBareBrowser } from '../harness/bare-browser.ts';

test('no warning is logged when a browser is closed while a client and an observer are disconnecting', async () => {
  const warnings: unknown[] = [];
  const log: Log = { ...silentLog, warn: (event, fields) => void warnings.push([event, fields]) };
  const bare = await startBareBrowser(log);
  try {
    const observation = await bare.browser.observe({ target: () => {} });
    const policy = { watchedMethods: new Set<string>(), judge: () => ({ pass: true }) as const };
    const client = await bare.browser.openClient(policy, {
      message: () => {},
      batchEnd: () => {},
      setPaused: () => {},
      failed: () => {},
      readLongMessage: async message => work(message),
    });
    const disconnections = [client.close(), observation.close()];
    await bare.browser.close();
    await Promise.allSettled(disconnections);
    assert.deepEqual(warnings, []);
    await Promise.all(disconnections);
  } finally {
    await bare.close();
  }
});
