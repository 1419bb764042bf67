// What agents remember about the consumer, and who may use it. Values are always shown as plain text.
import type { Consent, Consents, MemoryItem, MemoryPage } from '../../contract/consumer-memory.ts';
import { build, button, byId, confirmButton, listOf, setTitle, timeOf } from './parts.ts';
import type { Session } from './session.ts';

const PAGE_SIZE = 100;

export async function showMemory(session: Session): Promise<void> {
  const [consents, itemPage] = await Promise.all([
    session.send<Consents>('memory.consents'),
    session.send<MemoryPage>('memory.list', { limit: PAGE_SIZE }),
  ]);
  setTitle('Memory', 'What agents may remember about you. They see nothing that you have not allowed.');
  const itemList = build('ul', { className: 'plain' }, ...itemPage.data.map(one => itemElement(session, one)));
  const moreArea = build('div', {});
  const offerMore = (cursor: string | undefined): void =>
    moreArea.replaceChildren(
      ...(cursor === undefined
        ? []
        : [
            button('Show more', async () => {
              const next = await session.send<MemoryPage>('memory.list', { limit: PAGE_SIZE, cursor });
              itemList.append(...next.data.map(one => itemElement(session, one)));
              offerMore(next.nextCursor);
            }),
          ]),
    );
  offerMore(itemPage.nextCursor);
  byId('body').replaceChildren(
    build('h2', {}, 'Who may use it'),
    listOf(
      consents.data.map(one => consentItem(session, one)),
      'No agent may use it.',
    ),
    build('h2', {}, 'What is remembered'),
    ...(itemPage.data.length === 0
      ? [listOf([], 'Nothing is remembered.')]
      : [itemList, moreArea, createDeleteAllButton(session)]),
  );
}

const createDeleteAllButton = (session: Session): HTMLElement =>
  confirmButton('Delete everything that is remembered', 'Delete everything', async () => {
    await session.send('memory.delete', { prefix: '' });
    await showMemory(session);
  });

/** Describes keys in words. For example, `address.*` becomes `everything under address`. */
const keysInWords = (keys: readonly string[]): string =>
  keys
    .map(key =>
      key === '*' ? 'everything' : key.endsWith('*') ? `everything under ${key.replace(/\.?\*$/, '')}` : key,
    )
    .join(', ');

function consentItem(session: Session, { id, agent, keyId, keys, access, expiresAt }: Consent): HTMLLIElement {
  const agentLabel =
    agent ?? (keyId === '*' ? `All agents of ${session.application}` : 'An agent that no longer exists');
  const accessWords = access === 'write' ? 'may read and change ' : 'may read ';
  const withdrawButton = button(
    'Withdraw',
    async () => {
      await session.send('memory.withdraw', { id });
      await showMemory(session);
    },
    'quiet bad',
    `Withdraw the consent of ${agentLabel}`,
  );
  const expiryParts = expiresAt === undefined ? [] : [', until ', timeOf(expiresAt)];
  const textElement = build(
    'div',
    { className: 'row' },
    build('strong', {}, agentLabel),
    build('span', { className: 'about' }, accessWords, keysInWords(keys), ...expiryParts),
  );
  return build('li', { className: 'pair' }, textElement, withdrawButton);
}

function itemElement(
  session: Session,
  { key, updatedBy, updatedAt, bytes }: MemoryPage['data'][number],
): HTMLLIElement {
  const valueElement = build('pre', { tabIndex: 0 }, 'Loading…');
  valueElement.setAttribute('aria-label', `Value of ${key}`);
  const removeButton = confirmButton(
    'Delete',
    `Delete ${key}`,
    async () => {
      await session.send('memory.delete', { key });
      await showMemory(session);
    },
    `Delete ${key}`,
  );
  const authorWords = updatedBy.kind === 'consumer' ? 'by you' : 'by an agent';
  const head = build(
    'summary',
    { className: 'row' },
    build('strong', { className: 'key' }, key),
    ...(updatedBy.kind === 'consumer' ? [] : [build('span', { className: 'badge' }, 'by an agent')]),
    build('span', { className: 'about' }, `${sizeWords(bytes)}, written ${authorWords}, `, timeOf(updatedAt)),
  );
  const details = build('details', {}, head, build('div', { className: 'more' }, valueElement, removeButton));
  details.addEventListener('toggle', () => {
    if (!details.open) return;
    session.send<MemoryItem>('memory.get', { key }).then(
      item => {
        valueElement.textContent =
          typeof item.value === 'string' ? item.value : JSON.stringify(item.value, undefined, 2);
      },
      error => {
        valueElement.textContent =
          error instanceof Error ? error.message : 'The item could not be read. Reload the page.';
      },
    );
  });
  return build('li', {}, details);
}

const KIB = 1024;

const sizeWords = (bytes: number): string => (bytes < KIB ? `${bytes} bytes` : `${Math.round(bytes / KIB)} KiB`);
