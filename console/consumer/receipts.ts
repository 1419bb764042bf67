// What agents did that concerns the consumer, with the signed receipts.
import type { ConsumerReceipt, ConsumerReceiptPage } from '../../contract/consumer-data.ts';
import { button, byId, listOf, make, timeOf, titled } from './parts.ts';
import type { Session } from './session.ts';

const SHOWN = 25;

const WORDS: Readonly<Record<string, string>> = {
  succeeded: 'Done',
  failed: 'Failed',
  ambiguous: 'Outcome unknown',
  cancelled: 'Cancelled',
};

/** Addressed to the person to whom the memory belongs. */
const TITLES: Readonly<Record<string, string>> = {
  'memory.get': 'Read your memory',
  'memory.put': 'Wrote to your memory',
};

export async function showReceipts(session: Session): Promise<void> {
  titled(
    'Receipts',
    'What agents did for you, and how they used what they remember about you. Each receipt is signed.',
  );
  const list = make('ul', { className: 'plain' });
  const more = make('div', {});
  const load = async (cursor?: string): Promise<void> => {
    const page = await session.send<ConsumerReceiptPage>('receipts.list', {
      limit: SHOWN,
      ...(cursor === undefined ? {} : { cursor }),
    });
    list.append(...page.data.map(one => item(session, one)));
    const { nextCursor } = page;
    more.replaceChildren(...(nextCursor === undefined ? [] : [button('Show more', () => load(nextCursor))]));
  };
  await load();
  byId('body').replaceChildren(
    ...(list.childElementCount === 0 ? [listOf([], 'There are no receipts yet.')] : [list, more]),
  );
}

function item(session: Session, receipt: ConsumerReceiptPage['data'][number]): HTMLLIElement {
  const { id, operationTitle, operationId, status, agent, endedAt } = receipt;
  const save = button('Save the receipt', async () => {
    const whole = await session.send<ConsumerReceipt>('receipts.get', { id });
    offer(new Blob([whole.receipt], { type: 'application/jose' }), `receipt-${id}.jws`);
  });
  const body = make(
    'div',
    { className: 'more' },
    make('dl', {}, ...pair('Operation', operationId), ...pair('Receipt', receipt.receiptId)),
    save,
    make('p', { className: 'faint' }, 'Anyone can verify it without this service, with berth receipts verify.'),
  );
  const head = make(
    'summary',
    { className: 'row' },
    make('strong', {}, TITLES[operationId] ?? operationTitle),
    make('span', { className: `badge ${status}` }, WORDS[status] ?? status),
    make('span', { className: 'about' }, `${agent.name}, `, timeOf(endedAt)),
  );
  return make('li', {}, make('details', {}, head, body));
}

const pair = (label: string, value: string) => [make('dt', {}, label), make('dd', {}, value)];

/** Saves a file that the page holds. */
export function offer(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  make('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
