// What goes along with sessions without the session domain knowing it: contexts, files, the network, extensions,
// recordings, logs. Each is a watcher; wiring/families.ts has the list, and its order is the order in which they are asked.

import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import { within } from '../../kit/wait.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionRequest, SessionView } from './api.ts';
import type { Attendance, Preparation, Remains } from './attendance.ts';
import type { LiveSession } from './live.ts';
import { joinLaunchSettings } from './settings.ts';

/** Files are only moved; longer work is done later from rows. */
const SALVAGE_MS = 30_000;

export interface Watcher {
  /** Key of its part of `SessionRow.settings`. */
  readonly name: string;
  /** Before the row is written: checks what the create requests. Throws the fault that is returned. */
  check?(
    caller: AgentCaller,
    request: SessionRequest,
    id: SessionId,
    signal: AbortSignal,
  ): Promise<Checked | undefined>;
  /**
   * What this session's browser needs at its start. Undefined: any warm browser will do. A preparation of launch settings
   * alone can be met by a warm browser that was started with the same ones.
   */
  prepare?(row: SessionRow, signal: AbortSignal): Promise<Preparation | undefined>;
  /**
   * The browser is up and no client has connected yet; also called after an adoption. Watchers are called concurrently in
   * order: what one does before its first await is done before the next is called. A failure fails the start.
   */
  attend?(live: LiveSession, row: SessionRow, signal: AbortSignal): Promise<Attendance | undefined>;
  /**
   * After every end, also of a session of a former process: no process of the box runs, and its folder, which is hostile, is
   * about to be removed. Must be safe to repeat, since the process may die before the end is written.
   */
  salvage?(row: SessionRow, remains: Remains): Promise<void>;
  /** The row has reached its final status. Only a prompt: what must happen is also found from rows. */
  ended?(row: SessionRow): void;
  /** Fields that it adds to `GET /sessions/{id}`. */
  describe?(row: SessionRow): Promise<Partial<SessionView>>;
}

export interface Checked {
  /** Kept in the row's settings under the watcher's name. No secret in clear. */
  readonly kept?: JsonObject;
  /** Called when the session is not created after all. */
  undo?(): Promise<void>;
}

/** The list, called as one. */
export class Watchers {
  readonly #list: readonly Watcher[];
  readonly #log: Log;

  constructor(list: readonly Watcher[], log: Log) {
    this.#list = list;
    this.#log = log;
  }

  /** One after the other; when one refuses, what the ones before it did is undone. */
  async check(
    caller: AgentCaller,
    request: SessionRequest,
    id: SessionId,
    signal: AbortSignal,
  ): Promise<Required<Checked>> {
    const kept: Record<string, JsonObject> = {};
    const undoes: Array<() => Promise<void>> = [];
    const undo = async (): Promise<void> => {
      for (const one of undoes.splice(0).reverse())
        await one().catch(error => this.#log.error('session.not_undone', { sessionId: id, reason: reason(error) }));
    };
    try {
      for (const watcher of this.#list) {
        const checked = await watcher.check?.(caller, request, id, signal);
        if (checked?.kept) kept[watcher.name] = checked.kept;
        if (checked?.undo) undoes.push(() => checked.undo?.() ?? Promise.resolve());
      }
      return { kept, undo };
    } catch (error) {
      await undo();
      throw error;
    }
  }

  async prepare(row: SessionRow, signal: AbortSignal): Promise<Preparation | undefined> {
    const asked = await Promise.all(this.#list.map(watcher => watcher.prepare?.(row, signal)));
    const preparations = asked.filter(preparation => preparation !== undefined);
    if (preparations.length === 0) return undefined;
    const mounts = preparations.flatMap(one => one.mounts ?? []);
    const fills = preparations.flatMap(one => one.fill?.bind(one) ?? []);
    return {
      ...(mounts.length > 0 ? { mounts } : {}),
      ...joinLaunchSettings(preparations),
      ...(fills.length > 0 ? { fill: inTurn(fills) } : {}),
    };
  }

  async attend(live: LiveSession, row: SessionRow, signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#list.map(async watcher => {
        const attendance = await watcher.attend?.(live, row, signal);
        if (attendance) live.attendedBy(watcher.name, attendance);
      }),
    );
  }

  /** One that fails does not affect the others. */
  async salvage(row: SessionRow, remains: Remains): Promise<void> {
    await Promise.all(
      this.#list.map(watcher =>
        within(SALVAGE_MS, `${watcher.name} to be salvaged`, async () => watcher.salvage?.(row, remains)).catch(error =>
          this.#log.error('session.not_salvaged', { sessionId: row.id, what: watcher.name, reason: reason(error) }),
        ),
      ),
    );
  }

  ended(row: SessionRow): void {
    for (const watcher of this.#list) watcher.ended?.(row);
  }

  async describe(row: SessionRow): Promise<Partial<SessionView>> {
    const parts = await Promise.all(this.#list.map(watcher => watcher.describe?.(row)));
    return Object.assign({}, ...parts);
  }
}

type Fill = NonNullable<Preparation['fill']>;

const inTurn =
  (fills: readonly Fill[]): Fill =>
  async (place, signal) => {
    for (const fill of fills) await fill(place, signal);
  };
