// Reads all entries of a list. There are two shapes of list pages: an array with the next position in a header, or an
// object with `data` and `nextCursor`.

type ListPage<Item> = readonly Item[] | { readonly data: readonly Item[]; readonly nextCursor?: string };

const NEXT_HEADERS = ['x-next-before', 'x-next-after'];

/**
 * Yields the entries, with as many requests as necessary. `read` requests one list page. Its argument is the position
 * of that list page, which it sends as the query parameter `cursor`, `before` or `after`, whichever the list has:
 * `paginate(before => berth.GET('/v1/browsers/sessions', { params: { query: { before } } }))`
 */
export async function* paginate<Item>(
  read: (next: string | undefined) => Promise<{ data?: ListPage<Item> | undefined; response: Response }>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined;
  do {
    const { data, response } = await read(cursor);
    const items = itemsOf(data);
    yield* items;
    // A search may find nothing on one list page and more on the next, so an empty list page is not always the last
    // one. A log names a next position (`x-next-after`) even on its last list page, so a log ends at its first
    // empty list page.
    const mayContinue = items.length > 0 || !response.headers.has('x-next-after');
    cursor = mayContinue ? nextCursorOf(data, response) : undefined;
  } while (cursor !== undefined);
}

function itemsOf<Item>(page: ListPage<Item> | undefined): readonly Item[] {
  if (page === undefined) return [];
  return 'data' in page ? page.data : page;
}

function nextCursorOf(page: ListPage<unknown> | undefined, response: Response): string | undefined {
  if (page !== undefined && 'data' in page) return page.nextCursor;
  return NEXT_HEADERS.map(name => response.headers.get(name)).find(position => position !== null) ?? undefined;
}
