// List cursors, which mark where the next list page begins. They are opaque, signed, and valid for one list and one
// owner for a day.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { Secret } from '../../kit/secret.ts';
import { invalidRequest } from '../faults.ts';

const VALIDITY_MS = 24 * 3600 * 1000;
const SIGNATURE_BYTES = 16;

/** The list that a cursor belongs to. A cursor is refused for any other list or owner. */
export interface ListName {
  readonly list: string;
  readonly owner: string;
}

export class Cursors {
  readonly #secret: Secret;
  readonly #clock: Clock;

  constructor(secret: Secret, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** Returns a cursor for the list page after the item with this id. */
  after(name: ListName, id: string): string {
    const body = Buffer.from(`${addMs(this.#clock.now(), VALIDITY_MS).getTime()}.${id}`).toString('base64url');
    return `${body}.${this.#sign(name, body).toString('base64url')}`;
  }

  /** Returns the id in a cursor, after checking its signature and age. */
  read<Id extends string>(name: ListName, cursor: string): Id {
    const [body = '', signature = ''] = cursor.split('.');
    const signatureBytes = Buffer.from(signature, 'base64url');
    const expectedSignature = this.#sign(name, body);
    if (signatureBytes.length !== expectedSignature.length || !timingSafeEqual(signatureBytes, expectedSignature))
      throw badCursor();
    const text = Buffer.from(body, 'base64url').toString();
    const dotIndex = text.indexOf('.');
    if (Number(text.slice(0, dotIndex)) <= this.#clock.now().getTime()) throw badCursor();
    return text.slice(dotIndex + 1) as Id; // Authenticated by the signature.
  }

  #sign({ list, owner }: ListName, body: string): Buffer {
    return createHmac('sha256', this.#secret.reveal())
      .update(['cursor', list, owner, body].join('\n'))
      .digest()
      .subarray(0, SIGNATURE_BYTES);
  }
}

const badCursor = (): Error =>
  invalidRequest([
    {
      path: 'cursor',
      message: 'is not a cursor of this list, or is older than 24 hours; start again without a cursor',
    },
  ]);

/**
 * Makes a list page from rows. `rows` contains up to `limit + 1` rows. The additional row shows that there is a next
 * page.
 */
export function listPageOf<Row extends { readonly id: string }, View>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => View,
  cursorOf: (id: string) => string,
): { data: View[]; nextCursor?: string } {
  const pageRows = rows.slice(0, limit);
  const lastRow = pageRows.at(-1);
  return { data: pageRows.map(view), ...(lastRow && rows.length > limit ? { nextCursor: cursorOf(lastRow.id) } : {}) };
}
