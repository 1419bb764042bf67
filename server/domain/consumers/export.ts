// Exports everything that is stored about a consumer, file by file. Each file is read when it is sent, and nothing is
// stored.
import { PAGE_LIMIT_MAX } from '../../../contract/common.ts';
import { isFault } from '../../kit/fault.ts';
import type { Audit } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import type { ConsumerActions } from './consumer-actions.ts';
import type { ConsumerHandoffs } from './consumer-handoffs.ts';
import type { ConsumerSessions } from './consumer-sessions.ts';
import type { Memory } from './memory.ts';
import type { OwnConsumer } from './own-consumer.ts';
import type { Profiles } from './profiles.ts';
import type { ConsumerReceipts } from './receipts.ts';

export interface ExportedFile {
  readonly name: string;
  readonly text: string;
}

export interface ExportParts {
  readonly profiles: Pick<Profiles, 'read'>;
  readonly ownConsumer: Pick<OwnConsumer, 'listPasskeys'>;
  readonly sessions: Pick<ConsumerSessions, 'list'>;
  readonly memory: Pick<Memory, 'list' | 'get' | 'consents'>;
  readonly actions: Pick<ConsumerActions, 'list'>;
  readonly receipts: Pick<ConsumerReceipts, 'list' | 'read'>;
  readonly handoffs: Pick<ConsumerHandoffs, 'list'>;
  readonly audit: Pick<Audit, 'record'>;
}

export class ConsumerExport {
  readonly #parts: ExportParts;

  constructor(parts: ExportParts) {
    this.#parts = parts;
  }

  async begin(caller: ConsumerCaller): Promise<AsyncIterable<ExportedFile>> {
    const { audit } = this.#parts;
    await audit.record({ ...byConsumer(caller), action: 'consumer.exported', outcome: 'success' });
    return this.#files(caller);
  }

  async *#files(caller: ConsumerCaller): AsyncGenerator<ExportedFile> {
    const { profiles, ownConsumer, sessions, memory, actions, receipts, handoffs } = this.#parts;
    yield jsonFile('profile', await profiles.read(caller));
    yield jsonFile('passkeys', await ownConsumer.listPasskeys(caller));
    yield jsonFile('sessions', await sessions.list(caller));
    yield jsonFile('consents', await memory.consents(caller));
    for await (const { key } of allItems(page => memory.list(caller, page))) {
      const item = await ignoreNotFound(memory.get(caller, key));
      if (item) yield jsonFile(`memory/${key}`, item);
    }
    for await (const action of allItems(page => actions.list(caller, page)))
      yield jsonFile(`actions/${action.jobId}`, action);
    for await (const handoff of allItems(page => handoffs.list(caller, page)))
      yield jsonFile(`handoffs/${handoff.id}`, handoff);
    for await (const { id } of allItems(page => receipts.list(caller, page))) {
      const { receipt, ...receiptFields } = await receipts.read(caller, id);
      yield jsonFile(`receipts/${id}`, receiptFields);
      yield { name: `receipts/${id}.jws`, text: receipt };
    }
  }
}

/** Data that is deleted while the archive is created is not included. */
async function ignoreNotFound<Item>(read: Promise<Item>): Promise<Item | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isFault(error) && error.code === 'not_found') return undefined;
    throw error;
  }
}

const jsonFile = (name: string, value: unknown): ExportedFile => ({
  name: `${name}.json`,
  text: `${JSON.stringify(value, undefined, 2)}\n`,
});

interface Page<Item> {
  readonly data: readonly Item[];
  readonly nextCursor?: string;
}

async function* allItems<Item>(
  read: (page: { readonly limit: number; readonly cursor?: string }) => Promise<Page<Item>>,
): AsyncGenerator<Item> {
  for (let cursor: string | undefined; ; ) {
    const { data, nextCursor } = await read({ limit: PAGE_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) });
    yield* data;
    if (nextCursor === undefined) return;
    cursor = nextCursor;
  }
}
