import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { systemClock } from '../../kit/clock.ts';
import type { ApplicationId, HostId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { SecretTexts } from '../../kit/secret-texts.ts';
import type { ObservedTarget } from '../sessions/browser-host.ts';
import { PageNumbers } from '../sessions/page-numbers.ts';
import { ResponseTypes } from '../sessions/response-types.ts';
import { LogBook } from './log-book.ts';
import { logWatcher, type ObservedSession } from './watcher.ts';

const NOW = new Date('2026-11-20T10:00:00.000Z');
const ROW: SessionRow = {
  id: 'session' as SessionId,
  applicationId: 'application' as ApplicationId,
  hostId: 'host' as HostId,
  status: 'PENDING',
  region: 'local',
  keepAlive: false,
  userMetadata: {},
  settings: {},
  proxyBytes: 0,
  egressBytes: 0,
  createdAt: NOW,
  updatedAt: NOW,
  expiresAt: NOW,
  attached: false,
};

class Scene {
  readonly sentCommands: string[] = [];
  readonly writtenLines: string[] = [];
  observed = 0;
  readonly live: ObservedSession = {
    tap: undefined,
    redactTyped: undefined,
    rememberTyped: undefined,
    cover: undefined,
    responseTypes: new ResponseTypes(),
    secrets: new SecretTexts(),
    browser: {
      observe: async observer => {
        this.observed++;
        for (const kind of ['page', 'worker'] as const) observer.target(this.#target(kind));
        return { close() {} };
      },
    },
  };

  watcher(console: boolean) {
    const rows = {
      write: async (_: string, __: string, chunks: ReadonlyArray<{ readonly lines: readonly string[] }>) =>
        void this.writtenLines.push(...chunks.flatMap(({ lines }) => lines)),
      lastPosition: async () => undefined,
    };
    const pageRows = { list: async () => [], add: async () => void this.writtenLines.push('page') };
    const book = new LogBook({ rows, clock: systemClock, log: silentLog });
    const pages = new PageNumbers({ rows: pageRows, clock: systemClock, log: silentLog });
    return logWatcher({ book, pages, isConsoleLogged: console, clock: systemClock });
  }

  #target(kind: 'page' | 'worker'): ObservedTarget {
    return {
      id: kind,
      kind,
      contextId: undefined,
      openerId: undefined,
      url: '',
      parent: undefined,
      isNew: true,
      isGone: false,
      send: async () => ({}),
      post: method => void this.sentCommands.push(`${kind} ${method}`),
      on: listener => {
        listener('Runtime.consoleAPICalled', { type: 'log', args: [{ type: 'string', value: kind }] });
        return { close() {} };
      },
      whenGone: () => {},
    };
  }
}

describe('the log watcher', () => {
  it('enables console, network and page events in the browser, and stores these events', async () => {
    const scene = new Scene();
    const attendance = await scene.watcher(true)(scene.live, ROW);
    assert.deepEqual(scene.sentCommands.sort(), [
      'page Log.enable',
      'page Network.enable',
      'page Page.enable',
      'page Page.setLifecycleEventsEnabled',
      'page Runtime.enable',
      'worker Log.enable',
      'worker Network.enable',
      'worker Runtime.enable',
    ]);
    assert.ok(scene.live.tap);
    await attendance?.leave?.();
    assert.equal(scene.writtenLines.filter(line => line.includes('consoleAPICalled')).length, 2);
  });

  it('enables no events and stores no entries for a session without a log', async () => {
    const scene = new Scene();
    const attendance = await scene.watcher(true)(scene.live, { ...ROW, settings: { logSession: false } });
    assert.deepEqual([scene.observed, scene.sentCommands, scene.writtenLines], [0, [], []]);
    assert.ok(attendance === undefined && scene.live.tap === undefined);
  });

  it('does not enable the Runtime domain if the operator turned off the console log', async () => {
    const scene = new Scene();
    await scene.watcher(false)(scene.live, ROW);
    assert.ok(
      !scene.sentCommands.some(method => method.includes('Runtime')) &&
        scene.sentCommands.includes('page Network.enable'),
    );
  });
});
