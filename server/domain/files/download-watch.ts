// The downloads of one running session: hears of them from the browser, and takes each complete file out of the box, which
// is hostile. A file stays in the box until it is ours; whatever interrupts that, it is found there again.
import type { DownloadListener } from '../../engines/browser/download-events.ts';
import type { CompleteDownload, DownloadRow } from '../../engines/store/rows/downloads.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';
import { isCode } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { NotAPlainFile, openHostile } from '../../kit/hostile-file.ts';
import { type DownloadId, newId } from '../../kit/ids.ts';
import type { LiveSession } from '../sessions/live.ts';
import { downloadName } from './file-names.ts';
import { type Keeper, overTheBound, TooMuch } from './keeper.ts';

/** Names of downloads that one session may have; what comes after them is cancelled. */
const DOWNLOADS_MAX = 10_000;
const RETRY_MS = 2_000;
/** A disk with less is called full: Chromium gives up while some 16 MiB are free, and others write too. */
const FULL_BYTES = 64 * 1024 ** 2;
const DISK_FULL = 'the disk has no room for it';
const BROKE_OFF = 'it was cancelled or broke off';
/** How often the files of a predecessor's downloads are looked for: the browser tells only who was there when they began. */
const LOOK_MS = 1_000;
/** A file can be overlooked in the moment in which it gets its name; what is not there twice is not there. */
const LOOKS_BEFORE_ABSENT = 2;
/** So often is looked for downloads that no server heard of: the file of one that began in the gap shows a little later. */
const UNHEARD_LOOKS = 5;

interface Known {
  readonly row: DownloadRow;
  /** Where it began, if that was heard. */
  readonly frame: string;
  /** As its server said, where that was heard. */
  readonly mimeType: string | undefined;
  receivedBytes: number;
  over: boolean;
}

export class DownloadWatch implements DownloadListener {
  readonly #keeper: Keeper;
  readonly #live: LiveSession;
  readonly #known = new Map<string, Known>();
  readonly #working = new Set<Promise<void>>();
  readonly #leaving = new AbortController();
  #keptBytes = 0;

  constructor(keeper: Keeper, live: LiveSession) {
    this.#keeper = keeper;
    this.#live = live;
  }

  began({ guid, url, suggestedName, frame }: Parameters<DownloadListener['began']>[0]): void {
    if (this.#known.has(guid)) return;
    if (this.#known.size >= DOWNLOADS_MAX) return void this.#live.browser.cancelDownload(guid).catch(() => {});
    const known = this.#know(guid, downloadName(suggestedName), frame, this.#live.responseTypes.of(url));
    this.#work(() => this.#keeper.parts.rows.begin(known.row));
  }

  progressed({ guid, state, receivedBytes, totalBytes }: Parameters<DownloadListener['progressed']>[0]): void {
    const known = this.#known.get(guid);
    if (!known || known.over) return;
    known.receivedBytes = Math.max(receivedBytes, known.receivedBytes);
    if (state === 'inProgress') return this.#demandRoom(known);
    known.over = true;
    if (state === 'completed') this.#work(() => this.#take(known));
    else this.#brokeOff(known, totalBytes);
  }

  /** After an adoption: what began before us, and what came and went while nobody heard. */
  async resume(): Promise<void> {
    const rows = await this.#keeper.parts.rows.ofSession(this.#live.id);
    for (const row of rows) {
      this.#known.set(row.guid, {
        row,
        frame: '',
        mimeType: undefined,
        receivedBytes: 0,
        over: row.state !== 'running',
      });
      if (row.state === 'complete') this.#keptBytes += row.size ?? 0;
    }
    const open = [...this.#known.values()].filter(({ over }) => !over);
    for (const known of open) this.#work(() => this.#await(known));
    this.#work(() => this.#lookForUnheard());
  }

  /** What is being taken is given up; its file still stands in the box. */
  async leave(): Promise<void> {
    this.#leaving.abort(new Error('the session is being left'));
    await Promise.all(this.#working);
  }

  #know(guid: string, filename: string, frame = '', mimeType?: string): Known {
    const { host, clock } = this.#keeper.parts;
    const now = clock.now();
    const { id: sessionId, applicationId } = this.#live;
    const named = { id: newId<DownloadId>(now), applicationId, sessionId, hostId: host, guid, filename };
    const row: DownloadRow = { ...named, state: 'running', createdAt: now };
    const known: Known = { row, frame, mimeType, receivedBytes: 0, over: false };
    this.#known.set(guid, known);
    return known;
  }

  /** Until it works, or we go: the database may be away for a while, and the file is safe where it is. */
  #work(step: () => Promise<void>): void {
    const { clock, log } = this.#keeper.parts;
    const { signal } = this.#leaving;
    const run = async (): Promise<void> => {
      while (!signal.aborted)
        try {
          return await step();
        } catch (error) {
          if (signal.aborted) return;
          log.warn('download.retried', { sessionId: this.#live.id, reason: reason(error) });
          await clock.sleep(RETRY_MS, signal).catch(() => {});
        }
    };
    const work = run().finally(() => this.#working.delete(work));
    this.#working.add(work);
  }

  /** The bytes that are on their way count against the bound of the session. */
  #demandRoom(known: Known): void {
    let bytes = this.#keptBytes;
    for (const { receivedBytes, over } of this.#known.values()) if (!over) bytes += receivedBytes;
    if (bytes <= this.#keeper.parts.sessionBytesMax) return;
    known.over = true;
    this.#work(async () => {
      await this.#live.browser.cancelDownload(known.row.guid);
      await this.#fail(known, overTheBound(this.#keeper.parts.sessionBytesMax));
    });
  }

  /** What nobody was told of is there in two looks: in the first, the browser's word of it may still be on its way. */
  async #lookForUnheard(): Promise<void> {
    const { keeper, live } = { keeper: this.#keeper, live: this.#live };
    let before = new Set<string>();
    for (let look = 0; look < UNHEARD_LOOKS; look++) {
      if (look > 0) await keeper.parts.clock.sleep(LOOK_MS, this.#leaving.signal);
      const seen = new Set(await keeper.guidsIn(live.box.folder));
      for (const guid of seen) {
        if (!before.has(guid) || this.#known.has(guid) || this.#known.size >= DOWNLOADS_MAX) continue;
        const known = this.#know(guid, downloadName(''));
        this.#work(() => this.#await(known));
      }
      before = seen;
    }
  }

  /** Asked at once, before others give room again; told when there is room to write it down. */
  #brokeOff(known: Known, totalBytes: number): void {
    const why = this.#whyItBrokeOff(known, totalBytes);
    this.#work(async () => this.#fail(known, await why));
  }

  /** Chromium does not say it, so the disk is asked: what it took away again was there when it broke off. */
  async #whyItBrokeOff({ row, receivedBytes }: Known, totalBytes: number): Promise<string> {
    const { keeper, live } = { keeper: this.#keeper, live: this.#live };
    try {
      // In this order: what is still there behind the number was there in front of it.
      const free = await keeper.parts.staging.freeBytes();
      const seen = await keeper.look(live.box.folder, row.guid);
      keeper.parts.log.info('download.broke_off', { sessionId: live.id, free, seen, receivedBytes, totalBytes });
      const roomThen = free - (seen === 'absent' ? receivedBytes : 0);
      return roomThen < Math.max(FULL_BYTES, totalBytes - receivedBytes) ? DISK_FULL : BROKE_OFF;
    } catch {
      return BROKE_OFF;
    }
  }

  async #await(known: Known): Promise<void> {
    const { keeper, live } = { keeper: this.#keeper, live: this.#live };
    let absences = 0;
    while (!known.over) {
      const seen = await keeper.look(live.box.folder, known.row.guid);
      if (seen === 'partial') await keeper.parts.clock.sleep(LOOK_MS, this.#leaving.signal);
      else if (seen === 'whole') known.over = true;
      else if (++absences === LOOKS_BEFORE_ABSENT) {
        known.over = true;
        return this.#fail(known, BROKE_OFF);
      }
    }
    return this.#take(known);
  }

  async #take(known: Known): Promise<void> {
    try {
      const kept = await this.#keep(known);
      if (!kept) return;
      this.#keptBytes += kept.size;
      const { id: downloadId, filename, mimeType, size } = kept;
      await this.#tell('download.completed', { downloadId, filename, mimeType, size });
      this.#keeper.parts.kept(kept, known.frame);
    } catch (error) {
      const failure = this.#leaving.signal.aborted ? undefined : lasting(error);
      if (failure === undefined) throw error;
      await this.#fail(known, failure);
    }
  }

  async #keep({ row, mimeType }: Known): Promise<CompleteDownload | undefined> {
    const { keeper, live } = { keeper: this.#keeper, live: this.#live };
    const path = [keeper.parts.downloadsFolder, row.guid] as const;
    const file = await openHostile(live.box.folder, [...path], { uid: live.box.uid });
    if (!file) throw new NotAPlainFile('there is none');
    try {
      const { size } = await file.stat();
      await keeper.demandRoomFor(row, size);
      return await keeper.keepCopy(row, file, { bytes: size, mimeType }, this.#leaving.signal);
    } finally {
      await file.close();
    }
  }

  async #fail({ row }: Pick<Known, 'row'>, failure: string): Promise<void> {
    const { rows, clock } = this.#keeper.parts;
    await rows.begin(row);
    if (await rows.fail(row.sessionId, row.guid, failure, clock.now()))
      await this.#tell('download.failed', { filename: row.filename, reason: failure });
  }

  async #tell(type: 'download.completed' | 'download.failed', detail: JsonObject): Promise<void> {
    const { events, clock } = this.#keeper.parts;
    await events.append(this.#live.id, { type, at: clock.now(), actor: { kind: 'browser' }, detail });
  }
}

/** Why it will never be complete; undefined where another try may help. */
function lasting(error: unknown): string | undefined {
  if (error instanceof NotAPlainFile) return `its file cannot be taken: ${error.message}`;
  if (error instanceof TooMuch) return error.message;
  if (isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT')) return DISK_FULL;
  return undefined;
}
