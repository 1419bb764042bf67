import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandClock } from '../../../tests/harness/hand-clock.ts';
import type { Place } from '../../engines/store/rows/line.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { refusal } from '../limits/refusals.ts';
import { Line, type LineParts } from './line.ts';

test('a create that is joining the queue when the service stops is refused and leaves the queue', async () => {
  const joining = Promise.withResolvers<Place>();
  const left: number[] = [];
  const line = new Line({
    ...{ host: 'host', clock: new HandClock(), log: silentLog },
    rows: {
      join: () => joining.promise,
      leave: async (place: number) => void left.push(place),
      list: async () => [],
      keep: async () => {},
      moved: async () => {},
    },
    fleet: { isAlone: false, look: async () => {}, roomByRegion: new Map() },
  } as unknown as LineParts); // The members that the line uses.
  const refused = refusal('host', 1, 1);
  const entered = line.enter({
    ...{ application: 'shop' as ApplicationId, refused, waitMs: 50_000, maxWaiting: 10 },
    ...{ attempt: async () => ({ refused }), signal: new AbortController().signal },
  });
  line.stop(() => new Error('the service is stopping'));
  joining.resolve({ turn: 1, place: 7 });
  const isWaiting = new Promise(resolve => setImmediate(resolve)).then(() => 'waiting');
  assert.deepEqual(await Promise.race([entered, isWaiting]), { refused });
  assert.deepEqual(left, [7]);
});
