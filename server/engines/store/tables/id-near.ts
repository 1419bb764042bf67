// An id contains its creation time, so a query that filters by that time can also bound the id, and then scans only
// part of the index.
import { firstIdAt } from '../../../kit/ids.ts';

/**
 * The maximum time between the generation of an id and the insertion of its row. A create may wait in the queue during
 * this time.
 */
const ID_TO_INSERT_MS_MAX = 3_600_000;

/**
 * Returns an id that limits the index scan: ID_TO_INSERT_MS_MAX after the time (`1`) or before it (`-1`). The query
 * must also compare the time itself.
 */
export const idNear = <Id extends string>(time: Date, direction: 1 | -1): Id =>
  firstIdAt(new Date(Math.max(0, time.getTime() + direction * ID_TO_INSERT_MS_MAX)));
