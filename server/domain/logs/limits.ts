// Limits on the size of a session's log. Each kind of entry has its own share, so that a page that logs too much does
// not displace entries of other kinds.
import type { LogKind } from '../../../contract/logs.ts';

interface Share {
  readonly entries: number;
  readonly bytes: number;
}

const MIB = 1024 ** 2;

/**
 * The share of each kind. Bytes are counted before compression, which reduces them by about 90 percent. The total is
 * 100,000 entries and 76 MiB.
 */
export const SHARES: Readonly<Record<LogKind, Share>> = {
  console: { entries: 20_000, bytes: 16 * MIB },
  network: { entries: 60_000, bytes: 48 * MIB },
  page: { entries: 5_000, bytes: 4 * MIB },
  command: { entries: 15_000, bytes: 8 * MIB },
};

/** Maximum number of bytes that the log of a session buffers in memory while the database is unavailable. */
export const WAITING_BYTES_MAX = 2 * MIB;

/** The rate limit for logged commands: the burst, and the number per second. */
export const COMMAND_BURST_MAX = 2_000;
export const COMMANDS_PER_SECOND = 200;
