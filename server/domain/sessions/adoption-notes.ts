// Which sessions are being taken over, noted on disk before it is tried. Where that ended the server, its successor ends the
// session instead of trying again: what Chromium repeats to whoever comes would end that one too.
import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { boundedText, parseJson } from '../../kit/foreign.ts';
import type { SessionId } from '../../kit/ids.ts';

/** So long after it was taken over a session has shown that the server lives with it. */
export const STABLE_MS = 30_000;
/** A server may die of something else meanwhile, unseen (SIGKILL, no memory, no power); but not so often in a row. */
export const ATTEMPTS_MAX = 5;
const REASON_CHARS_MAX = 500;

interface Note {
  /** Times that it was taken over without having become stable. */
  readonly attempts: number;
  /** What ended the server in the midst of its handling. */
  readonly ended?: string;
}

export class AdoptionNotes {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #open = new Map<SessionId, Note>();
  readonly #handled = new AsyncLocalStorage<SessionId>();
  readonly #closing = new AbortController();

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Why a session may not be taken over again; undefined: it may. */
  refusal(id: SessionId): string | undefined {
    const { attempts, ended } = this.#read(id);
    if (ended !== undefined) return `taking over its browser ended the service: ${ended}`;
    return attempts >= ATTEMPTS_MAX ? `the service ended ${attempts} times while it took over its browser` : undefined;
  }

  /** Takes a session over. What is begun meanwhile is known to be of this session, for as long as it goes on. */
  async during<T>(id: SessionId, takeOver: () => Promise<T>): Promise<T> {
    const note = { attempts: this.#read(id).attempts + 1 };
    this.#open.set(id, note);
    this.#write(id, note);
    const taken = await this.#handled.run(id, takeOver);
    this.#clock.sleep(STABLE_MS, this.#closing.signal).then(
      () => this.settle(id),
      () => {}, // see close()
    );
    return taken;
  }

  /** It is stable, or has ended. */
  settle(id: SessionId): void {
    this.#open.delete(id);
    rmSync(this.#pathOf(id), { force: true });
  }

  /** The process ends because of this. Whose handling it was is known by where it was thrown. */
  processEnds(error: unknown): void {
    const id = this.#handled.getStore();
    const note = id === undefined ? undefined : this.#open.get(id);
    if (id && note) this.#write(id, { ...note, ended: boundedText(reason(error), REASON_CHARS_MAX) });
  }

  /** The process stops in good order: nothing of what was taken over has ended it. */
  close(): void {
    this.#closing.abort(new Error('the service stops'));
    for (const id of [...this.#open.keys()]) this.settle(id);
  }

  #read(id: SessionId): Note {
    const note = parseJson(readIfThere(this.#pathOf(id)));
    const { attempts, ended }: Record<string, unknown> = Object(note);
    return {
      attempts: typeof attempts === 'number' ? attempts : 0,
      ...(typeof ended === 'string' ? { ended } : {}),
    };
  }

  /** Synchronously: at a start nobody waits for us yet, and at the end there is no later. */
  #write(id: SessionId, note: Note): void {
    writeFileSync(this.#pathOf(id), JSON.stringify(note), { mode: 0o600 });
  }

  #pathOf(id: SessionId): string {
    return join(this.#folder, `${id}.json`);
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
