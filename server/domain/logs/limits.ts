// How much of a session's log is kept. Each kind has a share of its own, so that a page that says too much does not
// take the place of the others.
import type { LogKind } from '../../../contract/logs.ts';

interface Share {
  readonly entries: number;
  readonly bytes: number;
}

const MIB = 1024 ** 2;

/** Bytes before compression, which takes about nine tenths away. Together 100 000 entries and 76 MiB. */
export const SHARES: Readonly<Record<LogKind, Share>> = {
  console: { entries: 20_000, bytes: 16 * MIB },
  network: { entries: 60_000, bytes: 48 * MIB },
  page: { entries: 5_000, bytes: 4 * MIB },
  command: { entries: 15_000, bytes: 8 * MIB },
};

/** A session that waits for the database keeps no more than this in memory. */
export const WAITING_BYTES_MAX = 2 * MIB;

/** Commands of clients that are logged: so many at once, and so many a second after that. */
export const COMMANDS_AT_ONCE = 2_000;
export const COMMANDS_PER_SECOND = 200;
