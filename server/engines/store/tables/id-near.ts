// Ids that bound the part of an index to read, for a condition on the time of creation.
import { firstIdAt } from '../../../kit/ids.ts';

/** An id is made at most this long before its row is written: a create may wait in the queue. */
const ID_AND_ROW_APART_MS = 3_600_000;

/** Limits the part of the index that is read, on this side of the time; the exact condition is one on the time. */
export const idNear = <Id extends string>(time: Date, side: 1 | -1): Id =>
  firstIdAt(new Date(Math.max(0, time.getTime() + side * ID_AND_ROW_APART_MS)));
