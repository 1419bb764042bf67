// The log of one running session: accepts entries within limits, and writes them about once a second. Accepting an
// entry never waits and never throws. Dropped entries are counted, and markers in the log report them.
import type { LogKind } from '../../../contract/logs.ts';
import type { LogChunk, LogKinds, LogRows } from '../../engines/store/rows/logs.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { SecretTexts } from '../../kit/secret-texts.ts';
import { type EntryKind, type LogEntry, lineOf } from './entry.ts';
import { SHARES, WAITING_BYTES_MAX } from './limits.ts';
import { TypedText } from './typed-text.ts';

/** The last chunk is rewritten until it reaches this size, so that it compresses well. */
const CHUNK_BYTES = 128 * 1024;
/** If more bytes than this are waiting, a write starts at once instead of within a second. */
const WRITE_NOW_BYTES = 512 * 1024;
/** While entries are being dropped, markers are written at intervals that grow to this maximum. */
const MARKER_INTERVAL_MAX_MS = 60_000;
/** The `method` of a marker. Markers do not count against limits, so that they are always written. */
export const ENTRIES_DROPPED = 'Log.entriesDropped';

/** Why entries are missing. */
export type DropReason = 'limit' | 'rate' | 'waiting' | 'restart' | 'unreadable';

interface Line {
  readonly at: number;
  readonly kind: EntryKind;
  readonly text: string;
}

interface DroppedEntries {
  readonly reason: DropReason;
  /** Number of entries dropped since the last marker. */
  count: number;
  fromMs: number;
  markerCount: number;
  nextMarkerMs: number;
}

export interface SessionLogParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly application: ApplicationId;
  readonly session: SessionId;
  readonly rows: Pick<LogRows, 'write'>;
}

/** The state of the log that an earlier process wrote. */
export interface StoredState {
  readonly last: number;
  readonly kinds: LogKinds;
  /** Console messages up to this time are stored. */
  readonly consoleStoredUntilMs: number;
}

export class SessionLog {
  /** Secrets that the service itself typed into pages. Set when the watcher starts. */
  secrets = new SecretTexts();
  /** Typed text, which must be redacted everywhere. */
  readonly typedText = new TypedText();
  readonly consoleUntilMs: number;
  /** Parses the commands that are still queued, because they may contain typed text that must be redacted. */
  parseQueuedCommands: () => void = () => {};
  /** Returns the page number of a target that is a page or belongs to one. Set when the watcher starts. */
  pageOf: ((targetId: string) => number | undefined) | undefined;
  readonly #parts: SessionLogParts;
  readonly #usage: Record<LogKind, { entries: number; bytes: number }>;
  readonly #droppedByKind = new Map<LogKind, DroppedEntries>();
  #pending: Line[] = [];
  #pendingBytes = 0;
  /** Numbered chunks that are not stored yet, or that may still grow. */
  #chunks: Chunk[] = [];
  #nextNumber: number;
  #pendingWrite: Promise<void> | undefined;
  #hasWarned = false;
  /** True if the last write failed. */
  #lastWriteFailed = false;

  constructor(parts: SessionLogParts, storedState: StoredState = { last: 0, kinds: {}, consoleStoredUntilMs: 0 }) {
    this.#parts = parts;
    this.consoleUntilMs = storedState.consoleStoredUntilMs;
    this.#nextNumber = storedState.last + 1;
    this.#usage = usageOf(storedState.kinds);
  }

  /**
   * Whether an entry of this kind would be stored. If not, it is counted as dropped. Called before an entry is created.
   */
  canAccept(kind: LogKind): boolean {
    const { entries, bytes } = this.#usage[kind];
    if (entries >= SHARES[kind].entries || bytes >= SHARES[kind].bytes) return this.drop(kind, 'limit');
    if (this.#pendingBytes > WAITING_BYTES_MAX) return this.drop(kind, 'waiting');
    return true;
  }

  add(logEntry: LogEntry & { readonly kind: LogKind }): void {
    if (!this.canAccept(logEntry.kind)) return;
    if (logEntry.kind !== 'command') this.parseQueuedCommands();
    const cleanEntry = this.secrets.cleanAll(logEntry);
    const line = lineOf(cleanEntry);
    const text = this.typedText.occursIn(line) ? lineOf(this.typedText.redact(cleanEntry)) : line;
    const kindUsage = this.#usage[cleanEntry.kind];
    kindUsage.entries++;
    kindUsage.bytes += text.length;
    this.#push({ at: cleanEntry.at, kind: cleanEntry.kind, text });
    if (this.#pendingBytes > WRITE_NOW_BYTES && !this.#lastWriteFailed) void this.write();
  }

  /** Redacts text that clients typed, in text that is stored outside the log. */
  redactTyped(text: string): string {
    this.parseQueuedCommands();
    return this.typedText.redactText(text);
  }

  /** Counts a dropped entry. Always returns false, so that `canAccept` can return the result. */
  drop(kind: LogKind, reason: DropReason): false {
    const previousDrops = this.#droppedByKind.get(kind);
    if (previousDrops && previousDrops.reason !== reason) this.#writeMarker(kind, previousDrops);
    const currentDrops =
      previousDrops?.reason === reason
        ? previousDrops
        : { reason, count: 0, fromMs: 0, markerCount: 0, nextMarkerMs: 0 };
    if (currentDrops.count++ === 0) currentDrops.fromMs = this.#nowMs();
    this.#droppedByKind.set(kind, currentDrops);
    return false;
  }

  /** Counts an event that could not be converted. The first one is written to the server's log. */
  countUnreadable(kind: LogKind, error: unknown): void {
    const { log, session } = this.#parts;
    if (!this.#hasWarned) log.warn('logs.entry_failed', { sessionId: session, kind, reason: reason(error) });
    this.#hasWarned = true;
    this.drop(kind, 'unreadable');
  }

  /** Marks a period in which nothing was logged. */
  markGap(fromMs: number, toMs: number): void {
    this.#pushMarker('any', { reason: 'restart', from: fromMs, to: toMs });
  }

  /** Stores new entries. Never rejects: if a write fails, the next write stores its entries. */
  write(): Promise<void> {
    this.#pendingWrite ??= Promise.resolve()
      .then(() => this.#writeAll())
      .finally(() => {
        this.#pendingWrite = undefined;
      });
    return this.#pendingWrite;
  }

  /** Writes the remaining entries, with markers for dropped ones. */
  async close(): Promise<void> {
    await this.#pendingWrite;
    for (const [kind, dropped] of this.#droppedByKind) this.#writeMarker(kind, dropped);
    await this.write();
  }

  async #writeAll(): Promise<void> {
    this.#writeDueMarkers();
    this.#numberPending();
    const unwrittenChunks = this.#chunks.filter(chunk => chunk.isDirty);
    if (unwrittenChunks.length === 0) return;
    const { application, session, rows, clock, log } = this.#parts;
    const chunks = unwrittenChunks.map(chunk => chunk.snapshot());
    try {
      await rows.write(application, session, chunks, clock.now());
      this.#lastWriteFailed = false;
    } catch (error) {
      this.#lastWriteFailed = true;
      for (const chunk of unwrittenChunks) chunk.isDirty = true;
      log.warn('logs.not_written', { sessionId: session, reason: reason(error) });
      return;
    }
    this.#chunks = this.#chunks.filter(chunk => chunk.isDirty || !chunk.isFull);
  }

  /** Numbers the pending entries. Commands are added when their responses arrive, so the entries are sorted by time. */
  #numberPending(): void {
    // Limits the memory while the database is unavailable: entries beyond the limit are dropped before they are
    // numbered.
    if (this.#chunks.filter(chunk => chunk.isFull).length > 2 * (WAITING_BYTES_MAX / CHUNK_BYTES)) return;
    const lines = this.#pending.sort((one, other) => one.at - other.at);
    this.#pending = [];
    this.#pendingBytes = 0;
    for (const line of lines) this.#openChunk().add(line);
    this.#nextNumber += lines.length;
  }

  #openChunk(): Chunk {
    const last = this.#chunks.at(-1);
    if (last && !last.isFull) return last;
    const firstNumber = last ? last.end : this.#nextNumber;
    const chunk = new Chunk(firstNumber);
    this.#chunks.push(chunk);
    return chunk;
  }

  #writeDueMarkers(): void {
    const now = this.#nowMs();
    for (const [kind, dropped] of this.#droppedByKind)
      if (now >= dropped.nextMarkerMs) this.#writeMarker(kind, dropped);
  }

  #writeMarker(kind: LogKind, droppedEntries: DroppedEntries): void {
    const { reason, count, fromMs } = droppedEntries;
    if (count === 0) return;
    const now = this.#nowMs();
    this.#pushMarker(kind, { reason, count, from: fromMs, to: now });
    droppedEntries.count = 0;
    droppedEntries.nextMarkerMs = now + Math.min(MARKER_INTERVAL_MAX_MS, 1000 * 2 ** droppedEntries.markerCount++);
  }

  #pushMarker(
    kind: EntryKind,
    params: { readonly reason: DropReason; readonly [name: string]: string | number },
  ): void {
    const at = this.#nowMs();
    this.#push({ at, kind, text: lineOf({ at, kind, method: ENTRIES_DROPPED, params: { type: kind, ...params } }) });
  }

  #push(line: Line): void {
    this.#pending.push(line);
    this.#pendingBytes += line.text.length;
  }

  #nowMs(): number {
    return this.#parts.clock.now().getTime();
  }
}

class Chunk {
  readonly first: number;
  readonly #lines: string[] = [];
  readonly #kinds: Partial<Record<EntryKind, { entries: number; bytes: number }>> = {};
  #bytes = 0;
  isDirty = true;

  constructor(first: number) {
    this.first = first;
  }

  get end(): number {
    return this.first + this.#lines.length;
  }

  get isFull(): boolean {
    return this.#bytes >= CHUNK_BYTES;
  }

  add({ kind, text }: Line): void {
    this.isDirty = true;
    this.#lines.push(text);
    this.#bytes += text.length;
    const { entries, bytes } = this.#kinds[kind] ?? { entries: 0, bytes: 0 };
    this.#kinds[kind] = { entries: entries + 1, bytes: bytes + text.length };
  }

  snapshot(): LogChunk {
    this.isDirty = false;
    return { first: this.first, lines: [...this.#lines], kinds: structuredClone(this.#kinds) };
  }
}

const usageOf = (kinds: LogKinds): Record<LogKind, { entries: number; bytes: number }> => ({
  console: { entries: 0, bytes: 0, ...kinds.console },
  network: { entries: 0, bytes: 0, ...kinds.network },
  page: { entries: 0, bytes: 0, ...kinds.page },
  command: { entries: 0, bytes: 0, ...kinds.command },
});
