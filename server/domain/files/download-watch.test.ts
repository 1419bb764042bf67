import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { silentLog } from '../../kit/log.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { DownloadKeeper } from './download-keeper.ts';
import { DOWNLOADS_MAX, DownloadWatch } from './download-watch.ts';

test('cancels all downloads beyond the limit of a session, and reports only the first of them as failed', async () => {
  const [begunGuids, cancelledGuids, failures]: [string[], string[], string[]] = [[], [], []];
  const rows = {
    begin: async ({ guid }: { guid: string }) => void begunGuids.push(guid),
    fail: async (_session: string, guid: string, reason: string) => void failures.push(`${guid}: ${reason}`),
  };
  const keeper = { parts: { rows, clock: new ManualClock(), log: silentLog, host: 'h' } } as unknown as DownloadKeeper;
  const liveSession = {
    ...{ id: 's', applicationId: 'a', secrets: { clean: (text: string) => text } },
    browser: { cancelDownload: async (guid: string) => void cancelledGuids.push(guid) },
    responseTypes: { of: () => undefined },
  } as unknown as LiveSession;
  const watch = new DownloadWatch(keeper, liveSession);
  const begin = (guid: string): void =>
    watch.began({ guid, url: 'https://a.test/', suggestedName: 'file.txt', frame: '' });
  for (let n = 0; n < DOWNLOADS_MAX; n++) begin(`within ${n}`);
  for (const guid of ['first', 'second', 'third']) begin(guid);
  watch.progressed({ guid: 'first', state: 'canceled', receivedBytes: 0, totalBytes: 0 });
  await new Promise(done => setImmediate(done));
  assert.equal(begunGuids.length, DOWNLOADS_MAX + 1);
  assert.deepEqual(cancelledGuids, ['first', 'second', 'third']);
  assert.deepEqual(failures, [
    'first: the session has reached its limit of 10000 downloads; further downloads are cancelled and not reported',
  ]);
  await watch.leave();
});
