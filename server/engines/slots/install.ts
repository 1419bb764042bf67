// Who we are on this machine: the id that keeps two data folders apart (cgroup names, marks on processes, user ids),
// and the user ids that the boxes of this data folder run as.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '../../kit/fault.ts';

/** User ids from here on belong to boxes; ordinary users, containers' subordinate ranges of old, and services are below. */
const UIDS_FROM = 200_000;
/** Room for this many data folders on one machine before two may share user ids. */
const INSTALLS = 4000;
/** Each data folder has this many user ids; as many slots are the most that one may have. */
export const UIDS_PER_INSTALL = 1000;
/** Where only few ids are mapped (a container in a user namespace), we keep clear of the ones that images use. */
const UIDS_KEPT_FREE = 10_000;

/** Eight hex digits; made at the first start and kept in the data folder. */
export function readInstallId(dataDir: string): string {
  const file = join(dataDir, 'install-id');
  try {
    writeFileSync(file, randomBytes(4).toString('hex'), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  const id = readFileSync(file, 'utf8').trim();
  if (!/^[0-9a-f]{8}$/.test(id))
    throw new Fault('isolation_unavailable', `${file} does not hold eight hex digits.`, {
      advice: 'Remove the file while no session runs; a new one is made at the next start.',
    });
  return id;
}

/** The first user id of this data folder's boxes; slot N runs as the Nth. Undefined when too few ids are mapped here. */
export function firstUid(install: string, uidMap = readFileSync('/proc/self/uid_map', 'utf8')): number | undefined {
  const pick = createHash('sha256').update(install).digest().readUInt32BE(0);
  const roomy = UIDS_FROM + (pick % INSTALLS) * UIDS_PER_INSTALL;
  const ranges = mappedRanges(uidMap);
  if (ranges.some(range => range.from <= roomy && roomy + UIDS_PER_INSTALL <= range.end)) return roomy;
  return ranges.map(range => withinRange(range, pick)).find(uid => uid !== undefined);
}

interface Range {
  readonly from: number;
  readonly end: number;
}

/** Lines of "first id here, first id outside, how many". */
const mappedRanges = (uidMap: string): readonly Range[] =>
  uidMap
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/).map(Number))
    .map(([from = 0, , length = 0]) => ({ from, end: from + length }));

function withinRange(range: Range, pick: number): number | undefined {
  const from = Math.max(range.from, UIDS_KEPT_FREE);
  const places = Math.floor((range.end - from) / UIDS_PER_INSTALL);
  return places < 1 ? undefined : from + (pick % places) * UIDS_PER_INSTALL;
}
