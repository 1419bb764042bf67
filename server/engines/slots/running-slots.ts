// The slots of this process: which are taken, and by which box.
import { Fault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import { adoptBox } from './adopt-box.ts';
import type { Ground } from './ground.ts';
import type { RunningBox } from './running-box.ts';
import type { Box, BoxRecord, BoxWish, Form, Isolation, Slots } from './slots.ts';
import { startBox } from './start-box.ts';
import { sweep } from './sweep.ts';

export class RunningSlots implements Slots {
  readonly form: Form;
  readonly isolation: Isolation;
  readonly size: number;
  readonly missing: readonly string[];
  readonly #ground: Ground;
  readonly #taken = new Map<number, SessionId>();
  readonly #boxes = new Set<RunningBox>();

  constructor(ground: Ground, size: number, missing: readonly string[]) {
    this.#ground = ground;
    this.form = ground.form;
    this.isolation = ground.form === 'process' ? 'process' : 'slot';
    this.size = size;
    this.missing = missing;
  }

  async start(wish: BoxWish, signal: AbortSignal): Promise<Box> {
    signal.throwIfAborted();
    const slot = this.#take(this.#freeSlot(), wish.session);
    return this.#keep(slot, leave => startBox(this.#ground, slot, wish, leave, signal));
  }

  async adopt(session: SessionId, record: BoxRecord, signal: AbortSignal): Promise<Box | undefined> {
    const holder = this.#taken.get(record.slot);
    if (holder !== undefined) throw new Error(`slot ${record.slot} of session ${session} is held by session ${holder}`);
    const slot = this.#take(record.slot, session);
    return this.#keep(slot, leave => adoptBox(this.#ground, session, record, leave, signal));
  }

  sweep(keep: ReadonlySet<SessionId>): Promise<readonly string[]> {
    return sweep(this.#ground, new Set([...keep, ...this.#taken.values()]));
  }

  async close(): Promise<void> {
    const ends = await Promise.allSettled([...this.#boxes].map(box => box.close()));
    this.#ground.cgroups.close();
    const failures = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} boxes did not close`);
  }

  #freeSlot(): number {
    for (let slot = 0; slot < this.size; slot++) if (!this.#taken.has(slot)) return slot;
    throw new Fault('no_free_slot', `All ${this.size} slots of this host are taken.`, {
      advice: 'Try again when a session has ended, or raise BERTH_SLOTS.',
    });
  }

  #take(slot: number, session: SessionId): number {
    this.#taken.set(slot, session);
    return slot;
  }

  /** The slot is free again when the box has left, or never came. */
  async #keep<B extends RunningBox | undefined>(slot: number, open: (leave: () => void) => Promise<B>): Promise<B> {
    let opened: RunningBox | undefined;
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      this.#taken.delete(slot);
      if (opened) this.#boxes.delete(opened);
    };
    try {
      const box = await open(leave);
      opened = box;
      if (box) this.#boxes.add(box);
      else leave();
      return box;
    } catch (error) {
      leave();
      throw error;
    }
  }
}
