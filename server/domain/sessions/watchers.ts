// Parts of a session that the session domain does not depend on: contexts, files, the network, extensions, recordings,
// logs. Each is a watcher. wiring/families.ts lists the watchers in the order in which they are called.

import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionRequest, SessionView } from './api.ts';
import type { Attendance, Preparation, Remains } from './attendance.ts';
import type { LiveSession } from './live.ts';
import { joinLaunchSettings } from './settings.ts';

/** The time limit for `salvage`, which does only short work. Longer work is recorded in rows and done later. */
const SALVAGE_TIMEOUT_MS = 30_000;

export interface Watcher {
  /** The key of the watcher's part of `SessionRow.settings`. */
  readonly name: string;
  /**
   * If true, the other watchers attend only after this one, because it determines what the others must hide from the
   * start.
   */
  readonly mustAttendFirst?: true;
  /**
   * Called before the row is written, to check what the create requests. Throws the fault that is returned to the
   * caller.
   */
  check?(
    caller: AgentCaller,
    request: SessionRequest,
    id: SessionId,
    signal: AbortSignal,
  ): Promise<CheckResult | undefined>;
  /**
   * Returns what the browser of this session needs at its start. Undefined if any warm browser can be used. If the
   * preparation consists of launch settings only, a warm browser that was started with the same settings can be used.
   */
  prepare?(row: SessionRow, signal: AbortSignal): Promise<Preparation | undefined>;
  /**
   * Called when the browser runs and before a client connects, including after an adoption. After the watchers with
   * `mustAttendFirst`, the others are called in order and run concurrently: the code of a watcher before its first
   * `await` runs before the next watcher is called. If a watcher fails, the signal aborts, and the start fails when all
   * watchers have settled.
   */
  attend?(liveSession: LiveSession, row: SessionRow, signal: AbortSignal): Promise<Attendance | undefined>;
  /**
   * Called after every end, including the end of a session of a previous process, but not for a session that failed to
   * start in this process. All processes of the box have ended, and its untrusted folder is about to be removed. Must
   * be safe to repeat, because the server may die before the end is written.
   */
  salvage?(row: SessionRow, remains: Remains): Promise<void>;
  /**
   * Called when the row has its final status. The call may be missed after a crash, so the rows must also show which
   * work remains to be done.
   */
  ended?(row: SessionRow): void;
  /** Fields that the watcher adds to `GET /sessions/{id}`. */
  describe?(row: SessionRow): Promise<Partial<SessionView>>;
}

export interface CheckResult {
  /** Stored in the settings of the row under the name of the watcher. Must not contain an unencrypted secret. */
  readonly storedSettings?: JsonObject;
  /** Called if the session is not created after all. */
  undo?(): Promise<void>;
}

/** Calls all watchers of the list. */
export class Watchers {
  readonly #watchers: readonly Watcher[];
  readonly #log: Log;

  constructor(list: readonly Watcher[], log: Log) {
    this.#watchers = list;
    this.#log = log;
  }

  /** Calls the watchers one after the other. If one refuses, the effects of the previous watchers are undone. */
  async check(
    caller: AgentCaller,
    request: SessionRequest,
    id: SessionId,
    signal: AbortSignal,
  ): Promise<Required<CheckResult>> {
    const settingsByWatcher: Record<string, JsonObject> = {};
    const undoSteps: Array<() => Promise<void>> = [];
    const undo = async (): Promise<void> => {
      for (const one of undoSteps.splice(0).reverse())
        await one().catch(error => this.#log.error('session.not_undone', { sessionId: id, reason: reason(error) }));
    };
    try {
      for (const watcher of this.#watchers) {
        const checkResult = await watcher.check?.(caller, request, id, signal);
        if (checkResult?.storedSettings) settingsByWatcher[watcher.name] = checkResult.storedSettings;
        if (checkResult?.undo) undoSteps.push(() => checkResult.undo?.() ?? Promise.resolve());
      }
      return { storedSettings: settingsByWatcher, undo };
    } catch (error) {
      await undo();
      throw error;
    }
  }

  async prepare(row: SessionRow, signal: AbortSignal): Promise<Preparation | undefined> {
    const preparationResults = await Promise.all(this.#watchers.map(watcher => watcher.prepare?.(row, signal)));
    const preparations = preparationResults.filter(preparation => preparation !== undefined);
    if (preparations.length === 0) return undefined;
    const mounts = preparations.flatMap(one => one.mounts ?? []);
    const fills = preparations.flatMap(one => one.fill?.bind(one) ?? []);
    return {
      ...(mounts.length > 0 ? { mounts } : {}),
      ...joinLaunchSettings(preparations),
      ...(fills.length > 0 ? { fill: joinFills(fills) } : {}),
    };
  }

  async attend(liveSession: LiveSession, row: SessionRow, signal: AbortSignal): Promise<void> {
    const failureController = new AbortController();
    const combinedSignal = AbortSignal.any([signal, failureController.signal]);
    const attend = async (watcher: Watcher): Promise<void> => {
      const attendance = await watcher.attend?.(liveSession, row, combinedSignal);
      if (attendance) liveSession.addAttendance(watcher.name, attendance);
    };
    for (const watcher of this.#watchers) if (watcher.mustAttendFirst) await attend(watcher);
    const attendPromises = this.#watchers.filter(({ mustAttendFirst }) => !mustAttendFirst).map(attend);
    for (const one of attendPromises) one.catch(error => failureController.abort(error));
    // Wait for all watchers even if one has failed, because nothing would end an attendance that is returned later.
    await Promise.allSettled(attendPromises);
    await Promise.all(attendPromises);
  }

  /** Calls all watchers. If one fails, the others are not affected. */
  async salvage(row: SessionRow, remains: Remains): Promise<void> {
    await Promise.all(
      this.#watchers.map(watcher =>
        withTimeout(SALVAGE_TIMEOUT_MS, `${watcher.name} to be salvaged`, async () =>
          watcher.salvage?.(row, remains),
        ).catch(error =>
          this.#log.error('session.not_salvaged', { sessionId: row.id, what: watcher.name, reason: reason(error) }),
        ),
      ),
    );
  }

  ended(row: SessionRow): void {
    for (const watcher of this.#watchers) watcher.ended?.(row);
  }

  async describe(row: SessionRow): Promise<Partial<SessionView>> {
    const partialViews = await Promise.all(this.#watchers.map(watcher => watcher.describe?.(row)));
    const browserSettings = Object.assign({}, ...partialViews.map(part => part?.browserSettings));
    return Object.assign({}, ...partialViews, { browserSettings });
  }
}

type Fill = NonNullable<Preparation['fill']>;

const joinFills =
  (fills: readonly Fill[]): Fill =>
  async (place, signal) => {
    for (const fill of fills) await fill(place, signal);
  };
