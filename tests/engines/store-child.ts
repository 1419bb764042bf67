// A separate process for the store tests: locks the data folder or opens the store, prints `ready`, and closes it when
// stdin ends.
import { lockDataFolder } from '../../server/engines/store/data-folder.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { reason } from '../../server/kit/fault.ts';
import { silentLog } from '../../server/kit/log.ts';

const [mode, dataDir = ''] = process.argv.slice(2);

async function start(): Promise<{ close(): Promise<void> | void }> {
  if (mode === 'lock') return lockDataFolder(dataDir, { waitMs: 0 });
  const isBesideServer = mode === 'command';
  const store = await openStore({ dataDir, log: silentLog, clock: systemClock, isBesideServer, lockWaitMs: 0 });
  await store.ping();
  return store;
}

try {
  const closeable = await start();
  console.log('ready');
  process.stdin.once('end', async () => {
    await closeable.close();
    console.log('closed');
  });
  process.stdin.resume();
} catch (error) {
  console.log(`refused: ${reason(error)}`);
}
