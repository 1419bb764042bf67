// HTTP handlers for the data of a consumer: memory, consents, receipts, consumer sessions and the export.
import { PassThrough } from 'node:stream';
import yazl from 'yazl';
import type { ConsumerExport, ExportedFile } from '../../domain/consumers/export.ts';
import type { ConsumerServices } from '../../domain/consumers/open-consumers.ts';
import type { ConsumerReceipts } from '../../domain/consumers/receipts.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export interface ConsumerDataParts {
  readonly receipts: Pick<ConsumerReceipts, 'list' | 'read'>;
  readonly exports: Pick<ConsumerExport, 'begin'>;
}

export const consumerDataHandlers = (
  { memory, sessions }: Pick<ConsumerServices, 'memory' | 'sessions'>,
  { receipts, exports }: ConsumerDataParts,
) => ({
  listConsumerMemory: async ({ caller, body }: HandlerInput<'listConsumerMemory'>): Promise<HttpResponse> =>
    jsonResponse(await memory.list(caller, body)),

  readConsumerMemory: async ({ caller, body }: HandlerInput<'readConsumerMemory'>): Promise<HttpResponse> =>
    jsonResponse(await memory.get(caller, body.key)),

  writeConsumerMemory: async ({ caller, body }: HandlerInput<'writeConsumerMemory'>): Promise<HttpResponse> =>
    jsonResponse(await memory.put(caller, body)),

  deleteConsumerMemory: async ({ caller, body }: HandlerInput<'deleteConsumerMemory'>): Promise<HttpResponse> =>
    jsonResponse(await memory.delete(caller, body)),

  giveConsumerConsent: async ({ caller, body }: HandlerInput<'giveConsumerConsent'>): Promise<HttpResponse> =>
    jsonResponse(await memory.giveConsent(caller, body)),

  listConsumerConsents: async ({ caller }: HandlerInput<'listConsumerConsents'>): Promise<HttpResponse> =>
    jsonResponse(await memory.consents(caller)),

  withdrawConsumerConsent: async ({ caller, body }: HandlerInput<'withdrawConsumerConsent'>): Promise<HttpResponse> =>
    jsonResponse(await memory.withdrawConsent(caller, body.id)),

  readConsentingAgent: async ({ caller, body }: HandlerInput<'readConsentingAgent'>): Promise<HttpResponse> =>
    jsonResponse(await memory.agent(caller, body.keyId)),

  listConsumerReceipts: async ({ caller, body }: HandlerInput<'listConsumerReceipts'>): Promise<HttpResponse> =>
    jsonResponse(await receipts.list(caller, body)),

  readConsumerReceipt: async ({ caller, body }: HandlerInput<'readConsumerReceipt'>): Promise<HttpResponse> =>
    jsonResponse(await receipts.read(caller, body.id)),

  listConsumerSessions: async ({ caller }: HandlerInput<'listConsumerSessions'>): Promise<HttpResponse> =>
    jsonResponse(await sessions.list(caller)),

  endConsumerSessionNamed: async ({ caller, body }: HandlerInput<'endConsumerSessionNamed'>): Promise<HttpResponse> =>
    jsonResponse(await sessions.endSession(caller, body.id)),

  exportConsumerProfile: async ({ caller }: HandlerInput<'exportConsumerProfile'>): Promise<HttpResponse> => ({
    contentType: 'application/zip',
    headers: { 'content-disposition': 'attachment; filename="profile.zip"' },
    body: zipOf(await exports.begin(caller)),
  }),
});

/** The files are read only as fast as the archive is sent. */
export function zipOf(files: AsyncIterable<ExportedFile>): PassThrough {
  const zip = new yazl.ZipFile();
  const archiveStream = new PassThrough();
  zip.on('error', (error: Error) => archiveStream.destroy(error));
  zip.outputStream.pipe(archiveStream);
  const add = async (): Promise<void> => {
    for await (const { name, text } of files) {
      if (archiveStream.destroyed) return;
      zip.addBuffer(Buffer.from(text), name);
      if (archiveStream.writableNeedDrain) await waitForDrain(archiveStream);
    }
    zip.end();
  };
  add().catch(error => archiveStream.destroy(error));
  return archiveStream;
}

/** Also resolves when the caller has disconnected. */
const waitForDrain = (stream: PassThrough): Promise<void> =>
  new Promise(resolve => {
    const end = (): void => {
      stream.off('drain', end).off('close', end);
      resolve();
    };
    stream.on('drain', end).on('close', end);
  });
