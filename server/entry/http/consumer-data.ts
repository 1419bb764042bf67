// HTTP handlers for commands about the data of a consumer: memory, consents, receipts, sessions, the export.
import { PassThrough, type Readable } from 'node:stream';
import yazl from 'yazl';
import type { ConsumerExport, ExportedFile } from '../../domain/consumers/export.ts';
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { ConsumerReceipts } from '../../domain/consumers/receipts.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export interface ConsumerDataParts {
  readonly receipts: Pick<ConsumerReceipts, 'list' | 'read'>;
  readonly exports: Pick<ConsumerExport, 'begin'>;
}

export const consumerDataHandlers = (
  { memory, sessions }: Pick<ConsumerServices, 'memory' | 'sessions'>,
  { receipts, exports }: ConsumerDataParts,
) => ({
  listConsumerMemory: async ({ caller, body }: In<'listConsumerMemory'>): Promise<Answer> =>
    answer(await memory.list(caller, body)),

  readConsumerMemory: async ({ caller, body }: In<'readConsumerMemory'>): Promise<Answer> =>
    answer(await memory.get(caller, body.key)),

  writeConsumerMemory: async ({ caller, body }: In<'writeConsumerMemory'>): Promise<Answer> =>
    answer(await memory.put(caller, body)),

  deleteConsumerMemory: async ({ caller, body }: In<'deleteConsumerMemory'>): Promise<Answer> =>
    answer(await memory.delete(caller, body)),

  giveConsumerConsent: async ({ caller, body }: In<'giveConsumerConsent'>): Promise<Answer> =>
    answer(await memory.consent(caller, body)),

  listConsumerConsents: async ({ caller }: In<'listConsumerConsents'>): Promise<Answer> =>
    answer(await memory.consents(caller)),

  withdrawConsumerConsent: async ({ caller, body }: In<'withdrawConsumerConsent'>): Promise<Answer> =>
    answer(await memory.withdraw(caller, body.id)),

  readConsentingAgent: async ({ caller, body }: In<'readConsentingAgent'>): Promise<Answer> =>
    answer(await memory.agent(caller, body.keyId)),

  listConsumerReceipts: async ({ caller, body }: In<'listConsumerReceipts'>): Promise<Answer> =>
    answer(await receipts.list(caller, body)),

  readConsumerReceipt: async ({ caller, body }: In<'readConsumerReceipt'>): Promise<Answer> =>
    answer(await receipts.read(caller, body.id)),

  listConsumerSessions: async ({ caller }: In<'listConsumerSessions'>): Promise<Answer> =>
    answer(await sessions.list(caller)),

  endConsumerSessionNamed: async ({ caller, body }: In<'endConsumerSessionNamed'>): Promise<Answer> =>
    answer(await sessions.endSession(caller, body.id)),

  exportConsumerProfile: async ({ caller }: In<'exportConsumerProfile'>): Promise<Answer> => ({
    contentType: 'application/zip',
    headers: { 'content-disposition': 'attachment; filename="profile.zip"' },
    body: zipOf(await exports.begin(caller)),
  }),
});

/** The files are read only as fast as the archive is sent. */
function zipOf(files: AsyncIterable<ExportedFile>): Readable {
  const zip = new yazl.ZipFile();
  const sent = new PassThrough();
  zip.on('error', (error: Error) => sent.destroy(error));
  zip.outputStream.pipe(sent);
  const add = async (): Promise<void> => {
    for await (const { name, text } of files) {
      if (sent.destroyed) return;
      zip.addBuffer(Buffer.from(text), name);
      if (sent.writableNeedDrain) await waitForDrain(sent);
    }
    zip.end();
  };
  add().catch(error => sent.destroy(error));
  return sent;
}

/** Also resolves when the caller has disconnected. */
const waitForDrain = (stream: PassThrough): Promise<void> =>
  new Promise(resolve => {
    stream.once('drain', resolve);
    stream.once('close', resolve);
  });
