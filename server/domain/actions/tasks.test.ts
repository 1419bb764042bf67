import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addMs, systemClock } from '../../kit/clock.ts';
import { silentLog } from '../../kit/log.ts';
import { EXECUTE_TASK } from './decisions.ts';
import { actionTasks, type TasksParts } from './tasks.ts';

const NOW = new Date('2026-11-20T10:00:00.000Z');

test('postpones an approved Action that cannot be executed, and executes the Actions after it', async () => {
  const executedIds: string[] = [];
  const postponements: unknown[] = [];
  const tasks = actionTasks({
    ...{ clock: { ...systemClock, now: () => NOW }, log: silentLog, host: 'host' },
    store: {
      actions: {
        due: async () => ['broken', 'sound'].map(id => ({ id, applicationId: 'shop', keyId: 'key', digest: id })),
        postpone: async (...change: unknown[]) => void postponements.push(change),
      },
    },
    keys: { get: async () => ({ id: 'key', applicationId: 'shop', scopes: ['actions:execute'] }) },
    agent: {
      execute: async (_caller: unknown, _application: unknown, id: string) => {
        if (id === 'broken') throw new Error('the content of the Action cannot be opened');
        executedIds.push(id);
      },
    },
  } as unknown as TasksParts); // Contains only the members that the task uses.
  const task = tasks.find(({ name }) => name === EXECUTE_TASK) ?? assert.fail('there is no such task');
  assert.deepEqual(await task.run(), { executed: 1, heldBack: 1 });
  assert.deepEqual(executedIds, ['sound']);
  assert.deepEqual(postponements, [['broken', addMs(NOW, 60_000), 'internal']]);
});
