import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionRequest } from './api.ts';
import type { LiveSession } from './live.ts';
import { type Watcher, Watchers } from './watchers.ts';

const id = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const caller: AgentCaller = Object.create(null);
const request: SessionRequest = { keepAlive: false, userMetadata: {}, settings: {}, watcherSettings: {}, warnings: [] };
const row: SessionRow = Object.create(null);
const signal = new AbortController().signal;
const remains = { folder: '/nowhere', uploads: '/nowhere', uid: undefined };

const watchers = (...list: Watcher[]): Watchers => new Watchers(list, silentLog);

describe('watchers', () => {
  test('check returns the settings of each watcher under the name of the watcher, and omits watchers without settings', async () => {
    const two = watchers(
      { name: 'a', check: async () => ({ storedSettings: { one: 1 } }) },
      { name: 'b', check: async () => undefined },
      { name: 'c', check: async () => ({ storedSettings: { two: 2 } }) },
    );
    assert.deepEqual((await two.check(caller, request, id, signal)).storedSettings, { a: { one: 1 }, c: { two: 2 } });
  });

  test('undoes earlier checks in reverse order when a watcher refuses, and undoes each check only once', async () => {
    const undoneNames: string[] = [];
    const undoableWatcher = (name: string): Watcher => ({
      name,
      check: async () => ({ undo: async () => void undoneNames.push(name) }),
    });
    const refusingWatcher: Watcher = { name: 'r', check: () => Promise.reject(new Error('no')) };
    await assert.rejects(
      watchers(undoableWatcher('a'), undoableWatcher('b'), refusingWatcher).check(caller, request, id, signal),
      /no/,
    );
    assert.deepEqual(undoneNames, ['b', 'a']);
    const { undo } = await watchers(undoableWatcher('c')).check(caller, request, id, signal);
    await undo();
    await undo();
    assert.deepEqual(undoneNames, ['b', 'a', 'c']);
  });

  test('prepare returns undefined if there are no preparations, and merges the preparations of several watchers', async () => {
    assert.equal(await watchers({ name: 'a', prepare: async () => undefined }).prepare(row, signal), undefined);
    const filledPaths: string[] = [];
    const fillingWatcher = (name: string): Watcher => ({
      name,
      prepare: async () => ({
        mounts: [{ from: `/${name}`, to: `/in/${name}` }],
        policies: { [name]: true },
        fill: async ({ folder }) => void filledPaths.push(folder + name),
      }),
    });
    const both = await watchers(fillingWatcher('a'), fillingWatcher('b')).prepare(row, signal);
    assert.deepEqual(both?.mounts, [
      { from: '/a', to: '/in/a' },
      { from: '/b', to: '/in/b' },
    ]);
    assert.deepEqual(both?.policies, { a: true, b: true });
    await both?.fill?.({ folder: '/f/', uid: undefined }, signal);
    assert.deepEqual(filledPaths, ['/f/a', '/f/b']);
  });

  test('calls attend on other watchers only after a watcher with mustAttendFirst has attended', async () => {
    const attendedNames: string[] = [];
    const attendGate = Promise.withResolvers<void>();
    const late = (name: string, until?: Promise<void>): Pick<Watcher, 'name' | 'attend'> => ({
      name,
      attend: async () => {
        await until;
        attendedNames.push(name);
        return undefined;
      },
    });
    const list = watchers(late('a'), { ...late('b', attendGate.promise), mustAttendFirst: true }, late('c'));
    const attendPromise = list.attend(Object.create(null), row, signal);
    setImmediate(attendGate.resolve);
    await attendPromise;
    assert.deepEqual(attendedNames, ['b', 'a', 'c']);
  });

  test('if one watcher fails, attend rejects only after the other watchers have finished attending', async () => {
    const attendedNames: string[] = [];
    const slow: Watcher = {
      name: 'slow',
      attend: (_live, _row, attendSignal) =>
        new Promise(resolve =>
          attendSignal.addEventListener('abort', () => setImmediate(() => resolve({ leave: () => {} }))),
        ),
    };
    const failingWatcher: Watcher = { name: 'failing', attend: () => Promise.reject(new Error('broken')) };
    const live = { addAttendance: (name: string) => void attendedNames.push(name) } as unknown as LiveSession;
    await assert.rejects(watchers(slow, failingWatcher).attend(live, row, signal), /broken/);
    assert.deepEqual(attendedNames, ['slow']);
  });

  test('calls salvage on the other watchers if one watcher fails', async () => {
    const salvagedFolders: string[] = [];
    const failingWatcher: Watcher = { name: 'a', salvage: () => Promise.reject(new Error('broken')) };
    const workingWatcher: Watcher = {
      name: 'b',
      salvage: async (_row, { folder }) => void salvagedFolders.push(folder),
    };
    await watchers(failingWatcher, workingWatcher).salvage(row, remains);
    assert.deepEqual(salvagedFolders, ['/nowhere']);
  });
});
