// Cursors of lists: where the next page begins, opaque to callers, signed, good for one list and one owner for a day.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Clock, plus } from '../../kit/clock.ts';
import type { Secret } from '../../kit/secret.ts';
import { invalidRequest } from '../faults.ts';

const LIFE_MS = 24 * 3600 * 1000;
const SIGNATURE_BYTES = 16;

/** Which list: a cursor of another one, or of another owner, is refused. */
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

  /** A cursor for the page after the thing with this id. */
  after(name: ListName, id: string): string {
    const body = Buffer.from(`${plus(this.#clock.now(), LIFE_MS).getTime()}.${id}`).toString('base64url');
    return `${body}.${this.#sign(name, body).toString('base64url')}`;
  }

  /** The id in a cursor that we made. */
  read<Id extends string>(name: ListName, cursor: string): Id {
    const [body = '', signature = ''] = cursor.split('.');
    const given = Buffer.from(signature, 'base64url');
    const expected = this.#sign(name, body);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw badCursor();
    const text = Buffer.from(body, 'base64url').toString();
    const dot = text.indexOf('.');
    if (Number(text.slice(0, dot)) <= this.#clock.now().getTime()) throw badCursor();
    return text.slice(dot + 1) as Id; // Signed by us, so it is the id that we put in.
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
    { path: 'cursor', message: 'is not a cursor of this list, or is older than 24 hours; begin again without it' },
  ]);

/** Cuts a list that was fetched with one row more than asked for, and says where the next page begins. */
export function pageOf<Row extends { readonly id: string }, View>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => View,
  after: (id: string) => string,
): { data: View[]; nextCursor?: string } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { data: shown.map(view), ...(last && rows.length > limit ? { nextCursor: after(last.id) } : {}) };
}
