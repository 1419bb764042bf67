// Determines the install id and the user ids of this data folder's boxes. The install id distinguishes the data folders
// on one machine, in cgroup names, process marks and user ids.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOrCreate } from '../../kit/created-file.ts';
import { Fault } from '../../kit/fault.ts';

/**
 * The lowest user id of boxes. Ordinary users, services, and the range of subordinate ids that is assigned first for
 * containers have lower ids.
 */
const FIRST_UID = 200_000;
/** The number of user id ranges. A hash decides which of them a data folder uses. */
const UID_RANGE_COUNT = 4000;
/** The number of user ids per data folder: one for each of its slots, one for helpers, and one for the probe. */
export const UIDS_PER_INSTALL = 1000;
/**
 * The lowest user id of boxes if few ids are mapped, as in a container with a user namespace. Lower ids are left to the
 * container image.
 */
const RESERVED_UIDS = 10_000;

/** Returns the install id: eight hex digits, created at the first start and kept in the data folder. */
export function readInstallId(dataDir: string): string {
  const file = join(dataDir, 'install-id');
  const id = readOrCreate(file, () => randomBytes(4).toString('hex'));
  if (!/^[0-9a-f]{8}$/.test(id))
    throw new Fault('isolation_unavailable', `${file} does not contain eight hex digits.`, {
      advice: 'Remove the file while no session is running; the next start creates a new one.',
    });
  return id;
}

/**
 * Returns the first user id for this data folder's boxes. The box in slot N has the user id `firstUid + N`. Returns
 * undefined if too few ids are mapped.
 */
export function firstUid(installId: string, uidMap = readFileSync('/proc/self/uid_map', 'utf8')): number | undefined {
  const hash = createHash('sha256').update(installId).digest().readUInt32BE(0);
  const preferredUid = FIRST_UID + (hash % UID_RANGE_COUNT) * UIDS_PER_INSTALL;
  const ranges = mappedRanges(uidMap);
  if (ranges.some(range => range.from <= preferredUid && preferredUid + UIDS_PER_INSTALL <= range.end))
    return preferredUid;
  return ranges.map(range => firstUidInRange(range, hash)).find(uid => uid !== undefined);
}

interface Range {
  readonly from: number;
  readonly end: number;
}

/** Parses lines of the form "first id inside, first id outside, count". */
const mappedRanges = (uidMap: string): readonly Range[] =>
  uidMap
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/).map(Number))
    .map(([from = 0, , length = 0]) => ({ from, end: from + length }));

function firstUidInRange(range: Range, hash: number): number | undefined {
  const from = Math.max(range.from, RESERVED_UIDS);
  const rangeCount = Math.floor((range.end - from) / UIDS_PER_INSTALL);
  return rangeCount < 1 ? undefined : from + (hash % rangeCount) * UIDS_PER_INSTALL;
}
