// Makes a list page from a short list that is ordered by id and has been read completely.
import { type Cursors, type ListName, listPageOf } from './cursors.ts';

export interface PageRequest {
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly name: ListName;
  readonly cursors: Cursors;
}

export function listPageById<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { limit, cursor, name, cursors }: PageRequest,
): { data: Row[]; nextCursor?: string } {
  const afterId = cursor === undefined ? undefined : cursors.read<string>(name, cursor);
  const remainingRows = afterId === undefined ? rows : rows.filter(({ id }) => id > afterId);
  return listPageOf(
    remainingRows.slice(0, limit + 1),
    limit,
    row => row,
    last => cursors.after(name, last),
  );
}
