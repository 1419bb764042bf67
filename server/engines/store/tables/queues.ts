// Counts the background work that waits in the database.
import type { Db } from '../database.ts';
import type { QueueRows } from '../rows/queues.ts';
import { countAll } from './limited-insert.ts';

export const queues = (db: Db): QueueRows => ({
  count: async host => {
    const countQueries = {
      files: db.selectFrom('outbox').where('hostId', '=', host).select(countAll),
      webhooks: db.selectFrom('webhookDeliveries').where('dueAt', 'is not', null).select(countAll),
      mails: db.selectFrom('mails').where('dueAt', 'is not', null).select(countAll),
    };
    const [files, webhooks, mails] = await Promise.all([
      countQueries.files.executeTakeFirstOrThrow(),
      countQueries.webhooks.executeTakeFirstOrThrow(),
      countQueries.mails.executeTakeFirstOrThrow(),
    ]);
    return { files: files.count, webhooks: webhooks.count, mails: mails.count };
  },
});
