// Ids that bound the part of an index to read, for a condition on the time of creation.
import { firstIdAt } from '../../../kit/ids.ts';

/** An id is generated at most this long before its row is written: a create may wait in the queue. */
const ID_AND_ROW_APART_MS = 3_600_000;

/**
 * An id that limits the part of the index to read on this side of the time. The exact condition is on the time itself.
 */
export const idNear = <Id extends string>(time: Date, side: 1 | -1): Id =>
  firstIdAt(new Date(Math.max(0, time.getTime() + side * ID_AND_ROW_APART_MS)));
