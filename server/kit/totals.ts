// Adds up amounts, for example buffered bytes or running operations, for each session, each application and the
// process. Each of these levels has a bound.

const LEVEL_KINDS = ['session', 'application', 'process'] as const;
export type LevelKind = (typeof LEVEL_KINDS)[number];
export type Bounds = Readonly<Record<LevelKind, number>>;

export interface Owner {
  readonly application: string;
  /** Absent if the share belongs to no single session. */
  readonly session?: string;
}

/** One session, one application, or the process. Its sum is the sum of all its shares. */
export class Level {
  readonly kind: LevelKind;
  readonly max: number;
  readonly parent: Level | undefined;
  readonly shares = new Set<Share>();
  sum = 0;

  constructor(kind: LevelKind, max: number, parent?: Level) {
    this.kind = kind;
    this.max = max;
    this.parent = parent;
  }
}

export class Totals {
  readonly #bounds: Bounds;
  readonly #process: Level;
  readonly #levels = new Map<string, Level>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#process = new Level('process', bounds.process);
  }

  /** Opens a share that holds nothing yet. */
  open({ application, session }: Owner): Share {
    const applicationLevel = this.#level('application', `application ${application}`, this.#process);
    const level =
      session === undefined
        ? applicationLevel
        : this.#level('session', `session ${application} ${session}`, applicationLevel);
    return new Share(level, () => this.#forgetEmpty());
  }

  #level(kind: LevelKind, key: string, parent: Level): Level {
    const level = this.#levels.get(key) ?? new Level(kind, this.#bounds[kind], parent);
    this.#levels.set(key, level);
    return level;
  }

  #forgetEmpty(): void {
    for (const [key, level] of this.#levels) if (level.shares.size === 0) this.#levels.delete(key);
  }
}

export class Share {
  /** The levels that contain this share, innermost first: the session (if any), the application, the process. */
  readonly levels: readonly Level[];
  readonly #onClosed: () => void;
  #amount = 0;
  #isClosed = false;

  constructor(level: Level, onClosed: () => void) {
    const levels: Level[] = [];
    for (let current: Level | undefined = level; current; current = current.parent) levels.push(current);
    this.levels = levels;
    this.#onClosed = onClosed;
    for (const each of levels) each.shares.add(this);
  }

  get amount(): number {
    return this.#amount;
  }

  /** Sets the amount, regardless of the bounds. */
  set(amount: number): void {
    if (this.#isClosed) return;
    for (const level of this.levels) level.sum += amount - this.#amount;
    this.#amount = amount;
  }

  /** The innermost level that holds more than its bound. */
  get exceededLevel(): Level | undefined {
    return this.levels.find(({ sum, max }) => sum > max);
  }

  /**
   * Adds to the amount if every level has room for the addition; otherwise returns the first level that has no room. A
   * share may exceed the bound of a level if no other share in this level has an amount, so that nothing is refused
   * forever. `room` contains stricter bounds, which apply only to this call.
   */
  take(addedAmount: number, room: Partial<Bounds> = {}): Level | undefined {
    const fullLevel = this.levels.find(
      ({ sum, max, kind }) => sum > this.#amount && sum + addedAmount > Math.min(max, room[kind] ?? max),
    );
    if (!fullLevel) this.set(this.#amount + addedAmount);
    return fullLevel;
  }

  close(): void {
    if (this.#isClosed) return;
    this.set(0);
    this.#isClosed = true;
    for (const level of this.levels) level.shares.delete(this);
    if (this.levels.some(({ shares }) => shares.size === 0)) this.#onClosed();
  }
}
