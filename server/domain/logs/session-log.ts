// The log of one running session: takes entries as they come, keeps within the limits, and writes what there is about
// once a second. Taking an entry never waits and never throws; what is not kept is counted, and a marker tells of it.
import type { LogKind } from '../../../contract/logs.ts';
import type { LogChunk, LogKinds, LogRows } from '../../engines/store/rows/logs.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { type EntryKind, type LogEntry, lineOf } from './entry.ts';
import { SHARES, WAITING_BYTES_MAX } from './limits.ts';
import { TypedText } from './typed-text.ts';

/** The last chunk is written anew until it has this much, so that it compresses well. */
const CHUNK_BYTES = 128 * 1024;
/** So much is not left to the next second. */
const HASTE_BYTES = 512 * 1024;
/** While entries go on being dropped, markers tell of it at growing distances, in the end so often. */
const MARKER_MS_MAX = 60_000;
/** The marker. It takes nothing of the share of its kind, so that it always has a place. */
export const DROPPED = 'Log.entriesDropped';

/** Why entries are missing. */
export type DropReason = 'limit' | 'rate' | 'waiting' | 'restart' | 'unreadable';

interface Line {
  readonly at: number;
  readonly kind: EntryKind;
  readonly text: string;
}

interface Dropped {
  readonly why: DropReason;
  /** Since the last marker. */
  count: number;
  fromMs: number;
  markers: number;
  nextMarkerMs: number;
}

export interface SessionLogParts {
  readonly application: ApplicationId;
  readonly session: SessionId;
  readonly rows: Pick<LogRows, 'write'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Where a former process left off. */
export interface Standing {
  readonly last: number;
  readonly kinds: LogKinds;
  /** What was said in a console up to then is in the log. */
  readonly heardUntilMs: number;
}

export class SessionLog {
  /** What must not come into it by any way. */
  readonly typed = new TypedText();
  readonly heardUntilMs: number;
  /** Reads what clients have asked and nobody has looked at yet: it may say what must not come into the log. */
  catchUp: () => void = () => {};
  /** The number of the page that a target is, or is part of; known once somebody listens. */
  pageOf: ((targetId: string) => number | undefined) | undefined;
  readonly #parts: SessionLogParts;
  readonly #used: Record<LogKind, { entries: number; bytes: number }>;
  readonly #dropped = new Map<LogKind, Dropped>();
  #fresh: Line[] = [];
  #freshBytes = 0;
  /** Numbered, and not known to be durable; the last may still grow. */
  #chunks: Chunk[] = [];
  #next: number;
  #writing: Promise<void> | undefined;
  #hasWarned = false;
  /** The last write failed. */
  #inTrouble = false;

  constructor(parts: SessionLogParts, standing: Standing = { last: 0, kinds: {}, heardUntilMs: 0 }) {
    this.#parts = parts;
    this.heardUntilMs = standing.heardUntilMs;
    this.#next = standing.last + 1;
    this.#used = usedOf(standing.kinds);
  }

  /** Whether an entry of this kind would be kept; asked before one is made. One that would not be is counted. */
  takes(kind: LogKind): boolean {
    const { entries, bytes } = this.#used[kind];
    if (entries >= SHARES[kind].entries || bytes >= SHARES[kind].bytes) return this.drop(kind, 'limit');
    if (this.#freshBytes > WAITING_BYTES_MAX) return this.drop(kind, 'waiting');
    return true;
  }

  add(entry: LogEntry & { readonly kind: LogKind }): void {
    if (!this.takes(entry.kind)) return;
    if (entry.kind !== 'command') this.catchUp();
    const line = lineOf(entry);
    const text = this.typed.occursIn(line) ? lineOf(this.typed.redact(entry)) : line;
    const used = this.#used[entry.kind];
    used.entries++;
    used.bytes += text.length;
    this.#push({ at: entry.at, kind: entry.kind, text });
    if (this.#freshBytes > HASTE_BYTES && !this.#inTrouble) void this.write();
  }

  /** Counts one that is not kept. */
  drop(kind: LogKind, why: DropReason): false {
    const known = this.#dropped.get(kind);
    if (known && known.why !== why) this.#tellOf(kind, known);
    const dropped = known?.why === why ? known : { why, count: 0, fromMs: 0, markers: 0, nextMarkerMs: 0 };
    if (dropped.count++ === 0) dropped.fromMs = this.#nowMs();
    this.#dropped.set(kind, dropped);
    return false;
  }

  /** Counts one that could not be made of what was said. The operator hears of the first. */
  unreadable(kind: LogKind, error: unknown): void {
    const { log, session } = this.#parts;
    if (!this.#hasWarned) log.warn('logs.entry_failed', { sessionId: session, kind, reason: reason(error) });
    this.#hasWarned = true;
    this.drop(kind, 'unreadable');
  }

  /** Nobody listened between these times. */
  gap(fromMs: number, toMs: number): void {
    this.#marker('any', { reason: 'restart', from: fromMs, to: toMs });
  }

  /** Makes durable what there is. Rejects never: what cannot be written is written the next time. */
  write(): Promise<void> {
    this.#writing ??= Promise.resolve()
      .then(() => this.#writeAll())
      .finally(() => {
        this.#writing = undefined;
      });
    return this.#writing;
  }

  /** The last of it, with what is known of entries that were dropped. */
  async close(): Promise<void> {
    await this.#writing;
    for (const [kind, dropped] of this.#dropped) this.#tellOf(kind, dropped);
    await this.write();
  }

  async #writeAll(): Promise<void> {
    this.#tellWhereDue();
    this.#number();
    const unwritten = this.#chunks.filter(chunk => chunk.isDirty);
    if (unwritten.length === 0) return;
    const { application, session, rows, clock, log } = this.#parts;
    const chunks = unwritten.map(chunk => chunk.snapshot());
    try {
      await rows.write(application, session, chunks, clock.now());
      this.#inTrouble = false;
    } catch (error) {
      this.#inTrouble = true;
      for (const chunk of unwritten) chunk.isDirty = true;
      log.warn('logs.not_written', { sessionId: session, reason: reason(error) });
      return;
    }
    this.#chunks = this.#chunks.filter(chunk => chunk.isDirty || !chunk.isFull);
  }

  /** Commands are heard of when they are answered; within one write everything stands in the order of its time. */
  #number(): void {
    // What waits for the database is bounded: nothing is numbered that could not be kept.
    if (this.#chunks.filter(chunk => chunk.isFull).length > 2 * (WAITING_BYTES_MAX / CHUNK_BYTES)) return;
    const lines = this.#fresh.sort((one, other) => one.at - other.at);
    this.#fresh = [];
    this.#freshBytes = 0;
    for (const line of lines) this.#openChunk().add(line);
    this.#next += lines.length;
  }

  #openChunk(): Chunk {
    const last = this.#chunks.at(-1);
    if (last && !last.isFull) return last;
    const first = last ? last.end : this.#next;
    const chunk = new Chunk(first);
    this.#chunks.push(chunk);
    return chunk;
  }

  #tellWhereDue(): void {
    const now = this.#nowMs();
    for (const [kind, dropped] of this.#dropped) if (now >= dropped.nextMarkerMs) this.#tellOf(kind, dropped);
  }

  #tellOf(kind: LogKind, dropped: Dropped): void {
    const { why, count, fromMs } = dropped;
    if (count === 0) return;
    const now = this.#nowMs();
    this.#marker(kind, { reason: why, count, from: fromMs, to: now });
    dropped.count = 0;
    dropped.nextMarkerMs = now + Math.min(MARKER_MS_MAX, 1000 * 2 ** dropped.markers++);
  }

  #marker(kind: EntryKind, params: { readonly reason: DropReason; readonly [name: string]: string | number }): void {
    const at = this.#nowMs();
    this.#push({ at, kind, text: lineOf({ at, kind, method: DROPPED, params: { type: kind, ...params } }) });
  }

  #push(line: Line): void {
    this.#fresh.push(line);
    this.#freshBytes += line.text.length;
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

const usedOf = (kinds: LogKinds): Record<LogKind, { entries: number; bytes: number }> => ({
  console: { entries: 0, bytes: 0, ...kinds.console },
  network: { entries: 0, bytes: 0, ...kinds.network },
  page: { entries: 0, bytes: 0, ...kinds.page },
  command: { entries: 0, bytes: 0, ...kinds.command },
});
