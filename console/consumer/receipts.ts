// The receipts page: what agents did for the consumer or with the memory of the consumer, each with its signed receipt.
import type { ConsumerReceipt, ConsumerReceiptPage } from '../../contract/consumer-data.ts';
import { build, button, byId, listOf, setTitle, timeOf } from './parts.ts';
import type { Session } from './session.ts';

const PAGE_SIZE = 25;

const STATUS_TEXTS: Readonly<Record<string, string>> = {
  succeeded: 'Done',
  failed: 'Failed',
  ambiguous: 'Outcome unknown',
  cancelled: 'Cancelled',
};

/** Titles of memory operations, addressed to the consumer. Other receipts show the title of their operation. */
const TITLES: Readonly<Record<string, string>> = {
  'memory.get': 'Read your memory',
  'memory.put': 'Wrote to your memory',
};

export async function showReceipts(session: Session): Promise<void> {
  setTitle(
    'Receipts',
    'What agents did for you, and how they used what they remember about you. Each receipt is signed.',
  );
  const list = build('ul', { className: 'plain' });
  const moreArea = build('div', {});
  const load = async (cursor?: string): Promise<void> => {
    const page = await session.send<ConsumerReceiptPage>('receipts.list', {
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    list.append(...page.data.map(one => receiptItem(session, one)));
    const { nextCursor } = page;
    moreArea.replaceChildren(...(nextCursor === undefined ? [] : [button('Show more', () => load(nextCursor))]));
  };
  await load();
  byId('body').replaceChildren(
    ...(list.childElementCount === 0 ? [listOf([], 'There are no receipts yet.')] : [list, moreArea]),
  );
}

function receiptItem(session: Session, receipt: ConsumerReceiptPage['data'][number]): HTMLLIElement {
  const { id, operationTitle, operationId, status, agent, endedAt } = receipt;
  const saveButton = button('Save the receipt', async () => {
    const fullReceipt = await session.send<ConsumerReceipt>('receipts.get', { id });
    saveFile(new Blob([fullReceipt.receipt], { type: 'application/jose' }), `receipt-${id}.jws`);
  });
  const body = build(
    'div',
    { className: 'more' },
    build('dl', {}, ...pair('Operation', operationId), ...pair('Receipt', receipt.receiptId)),
    saveButton,
    build('p', { className: 'faint' }, 'Anyone can verify it without this service, with: berth receipts verify'),
  );
  const head = build(
    'summary',
    { className: 'row' },
    build('strong', {}, TITLES[operationId] ?? operationTitle),
    build('span', { className: `badge ${status}` }, STATUS_TEXTS[status] ?? status),
    build('span', { className: 'about' }, `${agent.name}, `, timeOf(endedAt)),
  );
  return build('li', {}, build('details', {}, head, body));
}

const pair = (label: string, value: string) => [build('dt', {}, label), build('dd', {}, value)];

/** Saves the data as a file with this name. */
export function saveFile(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  build('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
