// The slots of this process, and the box in each.
import type { Readable } from 'node:stream';
import { Fault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import { adoptBox } from './adopt-box.ts';
import type { BoxHost } from './box-host.ts';
import { readDiskRoom } from './disk-room.ts';
import { removeFolder } from './remove-folder.ts';
import { readTar } from './run-tar.ts';
import type { RunningBox } from './running-box.ts';
import type {
  Box,
  BoxRecord,
  BoxRequest,
  DiskRoom,
  Engine,
  Form,
  HelperBounds,
  HelperCommand,
  Isolation,
  NewFile,
  Slots,
} from './slots.ts';
import { startBox } from './start-box.ts';
import { type Salvage, sweep } from './sweep.ts';
import { writeFiles } from './write-files.ts';

export class RunningSlots implements Slots {
  readonly form: Form;
  readonly isolation: Isolation;
  readonly engines: ReadonlyMap<Engine, string>;
  readonly size: number;
  readonly missingFeatures: readonly string[];
  readonly #host: BoxHost;
  readonly #slotBySession = new Map<SessionId, number>();
  readonly #boxes = new Set<RunningBox>();

  constructor(host: BoxHost, size: number, missingFeatures: readonly string[], engines: ReadonlyMap<Engine, string>) {
    this.#host = host;
    this.engines = engines;
    this.form = host.form;
    this.isolation = host.form === 'process' ? 'process' : 'slot';
    this.size = size;
    this.missingFeatures = missingFeatures;
  }

  get usedCount(): number {
    return this.#slotBySession.size;
  }

  readDiskRoom(): Promise<DiskRoom> {
    return readDiskRoom(this.#host.sessionsDir);
  }

  async start(request: BoxRequest, signal: AbortSignal): Promise<Box> {
    signal.throwIfAborted();
    const slot = this.#reserve(request.session, this.#findFreeSlot());
    return this.#openInSlot(request.session, release => startBox(this.#host, slot, request, release, signal));
  }

  async adopt(session: SessionId, record: BoxRecord, signal: AbortSignal): Promise<Box | undefined> {
    // The box is adopted even if its slot is taken, because it is already running. Two boxes with the same user id are
    // better than ending a session.
    if ([...this.#slotBySession.values()].includes(record.slot))
      this.#host.log.warn('slot.shared', { session, slot: record.slot });
    this.#reserve(session, record.slot);
    return this.#openInSlot(session, release => adoptBox(this.#host, session, record, release, signal));
  }

  sweep(keep: ReadonlySet<SessionId>, salvage?: Salvage): Promise<readonly string[]> {
    return sweep(this.#host, new Set([...keep, ...this.#slotBySession.keys()]), salvage);
  }

  readTar<T>(...args: [string, readonly string[], (tar: Readable) => Promise<T>, AbortSignal]): Promise<T> {
    return readTar(this.#host, ...args);
  }

  writeFiles(folder: string, files: AsyncIterable<NewFile>, signal: AbortSignal): Promise<void> {
    return writeFiles(this.#host, folder, files, signal);
  }

  helper(program: string, args: readonly string[], bounds: HelperBounds): HelperCommand | undefined {
    return this.#host.helper(program, args, bounds);
  }

  remove(folder: string): Promise<void> {
    return removeFolder(folder);
  }

  async close(): Promise<void> {
    const results = await Promise.allSettled([...this.#boxes].map(box => box.close()));
    await this.#host.close();
    const failures = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []));
    if (failures.length > 0)
      throw new AggregateError(failures, `${failures.length} of ${results.length} boxes could not be closed`);
  }

  #findFreeSlot(): number {
    const usedSlots = new Set(this.#slotBySession.values());
    const unusedSlot = Array.from({ length: this.size }, (_, slot) => slot).find(slot => !usedSlots.has(slot));
    if (unusedSlot !== undefined && this.#slotBySession.size < this.size) return unusedSlot;
    throw new Fault('no_free_slot', 'All slots of this host are in use.', {
      advice: 'Try again when a session has ended, or raise BERTH_SLOTS.',
    });
  }

  #reserve(session: SessionId, slot: number): number {
    if (this.#slotBySession.has(session)) throw new Error(`session ${session} already has a box`);
    this.#slotBySession.set(session, slot);
    return slot;
  }

  /**
   * Opens a box in a reserved slot. The slot is freed when the box is closed or abandoned, or if it could not be
   * opened.
   */
  async #openInSlot<B extends RunningBox | undefined>(
    session: SessionId,
    open: (release: () => void) => Promise<B>,
  ): Promise<B> {
    let openedBox: RunningBox | undefined;
    let isReleased = false;
    const releaseOnce = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#slotBySession.delete(session);
      if (openedBox) this.#boxes.delete(openedBox);
    };
    try {
      const box = await open(releaseOnce);
      openedBox = box;
      if (box) this.#boxes.add(box);
      else releaseOnce();
      return box;
    } catch (error) {
      releaseOnce();
      throw error;
    }
  }
}
