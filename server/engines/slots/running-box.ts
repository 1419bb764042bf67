// One box from the moment its program runs until nothing of it is left. Knows how it ended, and takes everything
// away again. How it is started or found again is start-box.ts and adopt-box.ts.
import type { Server } from 'node:net';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { Scope } from '../../kit/scope.ts';
import type { BoxProcesses } from './box-processes.ts';
import { BusyWatch } from './busy-watch.ts';
import type { Cgroup } from './cgroup.ts';
import { UPLOADS_IN_JAIL } from './jail.ts';
import { LimitWatch } from './limit-watch.ts';
import type { Measured } from './measure.ts';
import type { SessionFolder } from './session-folder.ts';
import type { Box, BoxEnd, BoxPlace, BoxRecord, Remains } from './slots.ts';
import { type ExitCode, SIGNALLED, type SpawnedChain } from './spawn-chain.ts';

/** How often we look whether a box that is not our child still runs. */
const ADOPTED_LOOK_EVERY_MS = 250;
const SIGKILL = 9;
const SIGTERM = 15;

export interface RunningBoxWish {
  readonly session: SessionId;
  readonly record: BoxRecord;
  readonly uid: number | undefined;
  readonly place: BoxPlace;
  readonly folder: SessionFolder;
  readonly processes: BoxProcesses;
  readonly cgroup: Cgroup;
  readonly egress: Server;
  readonly diskBytes: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent when it is not our child. */
  readonly child?: SpawnedChain;
  /** Gives the slot back. */
  readonly onLeft: () => void;
}

export class RunningBox implements Box {
  readonly session: SessionId;
  readonly record: BoxRecord;
  readonly fifoIn: string;
  readonly fifoOut: string;
  readonly notes: string;
  readonly folder: string;
  readonly folderInBox: string;
  readonly uploads: string;
  readonly uploadsInBox: string;
  readonly uid: number | undefined;
  readonly egress: Server;
  readonly egressPort: number;
  readonly gone: Promise<BoxEnd>;
  readonly #wish: RunningBoxWish;
  readonly #watch: LimitWatch;
  readonly #busy: BusyWatch;
  readonly #letGo = new AbortController();
  #ending: BoxEnd | undefined;
  #closing: Promise<void> | undefined;

  constructor(wish: RunningBoxWish) {
    this.#wish = wish;
    this.session = wish.session;
    this.record = wish.record;
    this.fifoIn = wish.folder.fifoIn;
    this.fifoOut = wish.folder.fifoOut;
    this.notes = wish.folder.notes;
    this.folder = wish.folder.box;
    this.folderInBox = wish.place.folder;
    this.uploads = wish.folder.uploads;
    this.uploadsInBox = wish.place.jailed ? UPLOADS_IN_JAIL : wish.folder.uploads;
    this.uid = wish.uid;
    this.egress = wish.egress;
    this.egressPort = wish.place.egressPort;
    this.#watch = new LimitWatch({ ...wish, folder: wish.folder.box, onDiskLimit: over => this.#endForDisk(over) });
    this.#busy = new BusyWatch(wish);
    this.gone = this.#waitUntilGone();
  }

  hasten(): void {
    this.#wish.cgroup.setShare(1);
  }

  stderrTail(): string {
    return this.#wish.child?.stderr.text() ?? '';
  }

  /** Pid 1 of the box's own pid namespace, as this machine counts. */
  firstPid(): number | undefined {
    return this.#wish.processes.first?.pid;
  }

  async end(): Promise<Remains> {
    this.#ending ??= { why: 'closed', detail: 'closed by the server' };
    await this.#wish.processes.end();
    await this.gone;
    return this.#wish.folder.remains();
  }

  close(): Promise<void> {
    this.#ending ??= { why: 'closed', detail: 'closed by the server' };
    this.#closing ??= this.#takeAway();
    return this.#closing;
  }

  async abandon(): Promise<void> {
    if (this.#closing) return this.#closing;
    this.#closing = Promise.resolve();
    this.#letGo.abort();
    await this.#watch.close();
    await this.#busy.close();
    this.egress.close();
    this.#wish.child?.stderr.close();
    this.#wish.child?.process.unref();
    this.#wish.onLeft();
  }

  // ---- the end ---------------------------------------------------------------------------------------------------------

  /** Never settles for a box that was let go: nobody here knows any more. */
  async #waitUntilGone(): Promise<BoxEnd> {
    const code = await (this.#wish.child?.exited ?? this.#adoptedLeft());
    const end = this.#ending ?? this.#classify(code);
    await this.#wish.processes.end().catch(error => this.#complain('box.end_failed', error));
    return end;
  }

  async #adoptedLeft(): Promise<undefined> {
    while (this.#wish.processes.leaderIsAlive() && !this.#letGo.signal.aborted)
      await this.#wish.clock.sleep(ADOPTED_LOOK_EVERY_MS, this.#letGo.signal).catch(() => {});
    return this.#letGo.signal.aborted ? new Promise(() => {}) : undefined;
  }

  #classify(code: ExitCode | undefined): BoxEnd {
    if (this.#watch.justRanOutOfMemory() && (code === undefined || code === SIGNALLED + SIGKILL))
      return { why: 'out_of_memory', detail: 'the kernel ended the browser at the memory limit of the box' };
    if (code === undefined) return { why: 'exited', detail: 'ended; it was not our child, so how is not known' };
    if (code === SIGNALLED + SIGKILL || code === SIGNALLED + SIGTERM)
      return { why: 'killed', detail: `ended from outside by signal ${code - SIGNALLED}, or at its longest lifetime` };
    const how = code > SIGNALLED ? `crashed with signal ${code - SIGNALLED}` : `exited with code ${code}`;
    return { why: 'exited', detail: how };
  }

  #endForDisk({ over, bytes, entries }: Measured): void {
    if (this.#ending) return;
    this.#ending = {
      why: 'disk_limit',
      detail: `the session folder passed its bound (${over}): ${bytes} bytes in ${entries} entries`,
    };
    this.#wish.processes.end().catch(error => this.#complain('box.end_failed', error));
  }

  /** Every step is attempted: a folder that cannot be removed must not keep the slot. */
  async #takeAway(): Promise<void> {
    const { processes, cgroup, folder, child, onLeft } = this.#wish;
    const scope = new Scope();
    scope.defer(onLeft);
    scope.defer(() => folder.remove());
    scope.defer(() => cgroup.remove());
    scope.defer(() => child?.stderr.close());
    scope.defer(() => void this.egress.close());
    scope.defer(() => this.#watch.close());
    scope.defer(() => this.#busy.close());
    scope.defer(async () => void (await this.gone));
    scope.defer(() => processes.end());
    await scope.close();
  }

  #complain(event: string, error: unknown): void {
    this.#wish.log.error(event, { session: this.session, reason: reason(error) });
  }
}
