import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import { silentLog } from '../../kit/log.ts';
import { fault } from '../faults.ts';
import { InboxMails, type InboxMailsParts } from './mails.ts';

const NOW = new Date('2026-11-20T10:00:00.000Z');

/**
 * Creates the task for these accounts, each of which has one waiting request. `recordNotification` throws the account's
 * error if it has one.
 */
function setUpTask(errorByAccount: Readonly<Record<string, Error | undefined>>) {
  const said = { mailedTo: [] as string[], postponed: [] as unknown[], logged: [] as unknown[], sends: 0 };
  const item = { kind: 'handoff', id: 'handoff', reason: 'login', applicationId: 'shop', applicationName: 'Shop' };
  const inbox = {
    recordNotification: async (account: string) => {
      if (errorByAccount[account]) throw errorByAccount[account];
      return { address: `${account}@a.test`, waiting: [{ ...item, createdAt: NOW, expiresAt: NOW }] };
    },
  };
  const isDatabaseGone = 'gone' in errorByAccount;
  const mails = new InboxMails({
    clock: { ...systemClock, now: () => NOW },
    log: {
      ...silentLog,
      info: (...entry: unknown[]) => void said.logged.push(['info', ...entry]),
      error: (...entry: unknown[]) => void said.logged.push(['error', ...entry]),
    },
    store: {
      mails: { withdraw: async () => 0 },
      inbox: {
        accountsToNotify: async () => Object.keys(errorByAccount),
        postponeNotification: async (...change: unknown[]) => {
          if (isDatabaseGone) throw new Error('the database is gone');
          said.postponed.push(change);
        },
      },
      atomically: async (work: (trx: unknown) => unknown) => work({ inbox }),
    },
    mail: {
      write: async ({ to }: { to: string }) => void said.mailedTo.push(to),
      send: () => void said.sends++,
    },
    publicUrl: 'https://berth.test',
  } as unknown as InboxMailsParts); // Contains only the members that the task uses.
  const [task] = mails.tasks;
  assert.ok(task);
  return { task, said };
}

test('postpones an e-mail that cannot be composed or is rate-limited, and sends the e-mails to the other members', async () => {
  const { task, said } = setUpTask({
    broken: new Error('the definition cannot be read'),
    limited: fault('rate_limited', 'Too many e-mails.'),
    sound: undefined,
  });
  assert.deepEqual(await task.run(), { told: 1, withdrawn: 0 });
  assert.deepEqual([said.mailedTo, said.sends], [['sound@a.test'], 1]);
  assert.deepEqual(said.postponed, [
    ['broken', NOW],
    ['limited', NOW],
  ]);
  assert.deepEqual(said.logged, [
    ['error', 'inbox.not_told', { accountId: 'broken', reason: 'the definition cannot be read' }],
    ['info', 'inbox.not_told', { accountId: 'limited' }],
  ]);
});

test('sends the e-mails that were written before the run failed', async () => {
  const { task, said } = setUpTask({ sound: undefined, gone: new Error('the database is gone') });
  await assert.rejects(async () => task.run(), /the database is gone/);
  assert.deepEqual([said.mailedTo, said.sends], [['sound@a.test'], 1]);
});
