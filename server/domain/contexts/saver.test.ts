import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { ContextUse } from '../../engines/store/rows/contexts.ts';
import { systemClock } from '../../kit/clock.ts';
import { type ApplicationId, type ContextId, type HostId, newId, type SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { Saver, type SaverParts } from './saver.ts';

const now = new Date();
const use: ContextUse = {
  sessionId: newId<SessionId>(now),
  contextId: newId<ContextId>(now),
  applicationId: newId<ApplicationId>(now),
  hostId: newId<HostId>(now),
  exclusive: false,
  createdAt: now,
  tries: 0,
};

test('a save that ends while the due saves are read does not begin again', async () => {
  const closed = Promise.withResolvers<void>();
  let dueCalls = 0;
  let closeCalls = 0;
  const saver = new Saver({
    clock: systemClock,
    log: silentLog,
    host: newId<HostId>(now),
    uses: {
      orphans: async () => [],
      due: async () => {
        // The second answer arrives after the first save has ended.
        if (dueCalls++ > 0) await closed.promise.then(() => setImmediate());
        return [use];
      },
      close: async () => {
        closeCalls++;
        closed.resolve();
      },
    },
    // The context has been deleted, so the save ends by closing the use.
    rows: {
      get: async () => undefined,
      abandon: async () => {},
      takeRemovable: async () => [],
      forget: async () => {},
    },
    profiles: { staging: () => ({ remove: async () => {} }) },
  } as unknown as SaverParts);
  await saver.reconcile();
  await saver.reconcile();
  await saver.close();
  assert.equal(closeCalls, 1);
});
