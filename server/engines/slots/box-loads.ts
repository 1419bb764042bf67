// Tracks how much processor time each box of this process uses, and whether busy boxes are scheduled as idle.

/** A box that uses more processors than this between two checks is busy. */
const BUSY_START_PROCESSORS = 0.45;
/** A busy box stops being busy when its average use falls below this many processors. */
const BUSY_END_PROCESSORS = 0.2;
/**
 * The weight of the newest check in the average, which therefore covers about three seconds. Without the average, a
 * busy box that gets little processor time because it is scheduled as idle would soon be scheduled normally again.
 */
const LAST_CHECK_WEIGHT = 0.07;
/** A box whose average is greater than this is in use. A page that does nothing stays below it. */
const IN_USE_PROCESSORS_MIN = 0.01;
/**
 * A box still counts as in use for this many checks (30 seconds) after its average was last greater than
 * IN_USE_PROCESSORS_MIN.
 */
const IN_USE_CHECKS_MAX = 150;

/** Tracks how many processors one box uses. */
export class BoxLoad {
  readonly #loads: Set<BoxLoad>;
  #isClaimed: boolean;
  /** At first, a box counts as busy, because it has just been started. */
  #average = BUSY_START_PROCESSORS;
  #isBusy = true;
  #checksSinceUse = 0;

  constructor(loads: Set<BoxLoad>, isClaimed: boolean) {
    this.#loads = loads;
    this.#isClaimed = isClaimed;
    loads.add(this);
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether the box belongs to a session that uses its browser without keeping a processor busy. */
  get isCalm(): boolean {
    return !this.#isBusy && this.#isClaimed && this.#checksSinceUse <= IN_USE_CHECKS_MAX;
  }

  /** Call when a session claims the box. Until then, the box runs a warm browser. */
  claim(): void {
    this.#isClaimed = true;
  }

  /** Call at each check, with the average number of processors that the box has used since the previous check. */
  add(usedProcessors: number): void {
    this.#average += (usedProcessors - this.#average) * LAST_CHECK_WEIGHT;
    if (usedProcessors > BUSY_START_PROCESSORS) this.#average = Math.max(this.#average, usedProcessors);
    this.#isBusy = this.#average > (this.#isBusy ? BUSY_END_PROCESSORS : BUSY_START_PROCESSORS);
    this.#checksSinceUse = this.#average > IN_USE_PROCESSORS_MIN ? 0 : this.#checksSinceUse + 1;
  }

  close(): void {
    this.#loads.delete(this);
  }
}

export class BoxLoads {
  readonly #loads = new Set<BoxLoad>();

  open(isClaimed: boolean): BoxLoad {
    return new BoxLoad(this.#loads, isClaimed);
  }

  /**
   * Whether any box is calm. Only then are busy boxes scheduled as idle, because only calm boxes benefit from it.
   * Otherwise busy boxes compete normally with each other, with the server and with the other programs of the machine.
   */
  get hasCalm(): boolean {
    return [...this.#loads].some(load => load.isCalm);
  }
}
