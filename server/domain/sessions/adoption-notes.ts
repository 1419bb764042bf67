// Notes on disk about the sessions that are being adopted, written before each attempt. If an attempt made the server
// exit, the next start ends the session instead of trying again, because Chromium would send the same messages again.
import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { boundedText, parseJson } from '../../kit/foreign.ts';
import type { SessionId } from '../../kit/ids.ts';

/** How long a server must run after an adoption to count as stable: the adoption then did not make it exit. */
export const STABILITY_WAIT_MS = 30_000;
/**
 * A server may also end for a reason that leaves no note (SIGKILL, out of memory, power loss). After this many attempts
 * in a row, the adoption is considered to be the reason.
 */
export const ATTEMPTS_MAX = 5;
const REASON_CHARS_MAX = 500;

interface Note {
  /** Number of adoptions of this session after which the server did not become stable. */
  readonly attempts: number;
  /** The error that ended the server during the adoption. */
  readonly ended?: string;
}

export class AdoptionNotes {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #openNotes = new Map<SessionId, Note>();
  readonly #currentSession = new AsyncLocalStorage<SessionId>();
  readonly #closeController = new AbortController();

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Why the session may not be adopted again. Undefined if it may be. */
  refusal(id: SessionId): string | undefined {
    const { attempts, ended } = this.#read(id);
    if (ended !== undefined) return `the service ended because of an error while it adopted the browser: ${ended}`;
    return attempts >= ATTEMPTS_MAX ? `the service ended ${attempts} times while it adopted the browser` : undefined;
  }

  /** Runs an adoption. Asynchronous work that it starts is attributed to the session until that work ends. */
  async runAdoption<T>(id: SessionId, adopt: () => Promise<T>): Promise<T> {
    const note = { attempts: this.#read(id).attempts + 1 };
    this.#openNotes.set(id, note);
    this.#write(id, note);
    const result = await this.#currentSession.run(id, adopt);
    this.#clock.sleep(STABILITY_WAIT_MS, this.#closeController.signal).then(
      () => this.settle(id),
      () => {}, // Aborted by `close`, which also removes the note.
    );
    return result;
  }

  /** Called when the session is stable or has ended. */
  settle(id: SessionId): void {
    this.#openNotes.delete(id);
    rmSync(this.#pathOf(id), { force: true });
  }

  /**
   * Called when the process is about to exit because of this error. The error is attributed to the session whose work
   * threw it.
   */
  recordProcessEnd(error: unknown): void {
    const id = this.#currentSession.getStore();
    const note = id === undefined ? undefined : this.#openNotes.get(id);
    if (id && note) this.#write(id, { ...note, ended: boundedText(reason(error), REASON_CHARS_MAX) });
  }

  /** Called when the process stops normally. Removes the notes, because no adoption has ended the process. */
  close(): void {
    this.#closeController.abort(new Error('the service is stopping'));
    for (const id of [...this.#openNotes.keys()]) this.settle(id);
  }

  #read(id: SessionId): Note {
    const note = parseJson(readIfExists(this.#pathOf(id)));
    const { attempts, ended }: Record<string, unknown> = Object(note);
    return {
      attempts: typeof attempts === 'number' ? attempts : 0,
      ...(typeof ended === 'string' ? { ended } : {}),
    };
  }

  /**
   * Synchronous, because an asynchronous write would not complete while the process exits. Blocking is acceptable,
   * because no request is served during the start.
   */
  #write(id: SessionId, note: Note): void {
    writeFileSync(this.#pathOf(id), JSON.stringify(note), { mode: 0o600 });
  }

  #pathOf(id: SessionId): string {
    return join(this.#folder, `${id}.json`);
  }
}

function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
