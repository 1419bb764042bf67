// The record of a running server: a file in the data folder with the process id, the start time and the addresses.
// Commands find the server through this file. They read from /proc each time whether that process is still running,
// because the process id may have been reused.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ServerRecord {
  readonly pid: number;
  /** The start time of the process in clock ticks: field 22 of /proc/PID/stat. */
  readonly startTicks: string;
  /** Absent in records written by servers from before 24 November 2026. */
  readonly addresses?: ServerAddresses;
}

export interface ServerAddresses {
  /** Where the server listens. */
  readonly url: string;
  /** `BERTH_PUBLIC_URL`, or the address that is used if this setting is absent. */
  readonly publicUrl: string;
  /** Where the server's metrics and readiness are served. Absent if `BERTH_OPERATOR_LISTEN` is `off`. */
  readonly operatorUrl?: string;
}

const fileOf = (dataDir: string): string => join(dataDir, 'server.json');

/** Replaces the file atomically. */
export function writeServerRecord(dataDir: string, addresses: ServerAddresses, pid = process.pid): void {
  const record: ServerRecord = { pid, startTicks: startTicksOf(pid) ?? '', addresses };
  const temporaryFile = `${fileOf(dataDir)}.${pid}`;
  writeFileSync(temporaryFile, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  renameSync(temporaryFile, fileOf(dataDir));
}

/** Removes the file, unless a successor has replaced it. */
export function removeServerRecord(dataDir: string, pid = process.pid): void {
  if (readRecord(dataDir)?.pid === pid) rmSync(fileOf(dataDir), { force: true });
}

/** Returns the server that uses this data folder, if it is running. */
export function runningServer(dataDir: string): ServerRecord | undefined {
  const record = readRecord(dataDir);
  return record && isRunning(record) ? record : undefined;
}

export const isRunning = (record: ServerRecord): boolean => startTicksOf(record.pid) === record.startTicks;

function readRecord(dataDir: string): ServerRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(fileOf(dataDir), 'utf8'));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is ServerRecord {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('startTicks' in value)) return false;
  if ('addresses' in value && !areAddresses(value.addresses)) return false;
  return Number.isSafeInteger(value.pid) && Number(value.pid) > 1 && /^\d+$/.test(String(value.startTicks));
}

export const parseAddresses = (value: unknown): ServerAddresses | undefined =>
  areAddresses(value) ? value : undefined;

function areAddresses(value: unknown): value is ServerAddresses {
  if (typeof value !== 'object' || value === null || !('url' in value) || !('publicUrl' in value)) return false;
  if ('operatorUrl' in value && typeof value.operatorUrl !== 'string') return false;
  return typeof value.url === 'string' && typeof value.publicUrl === 'string';
}

/** Undefined if the process has ended, even if it is still a zombie. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
