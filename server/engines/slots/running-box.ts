// Watches one running box, determines how it ended, and cleans up. start-box.ts starts a box, and adopt-box.ts adopts
// one.
import type { Server } from 'node:net';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { Scope } from '../../kit/scope.ts';
import type { BoxLoads } from './box-loads.ts';
import type { BoxProcesses } from './box-processes.ts';
import { BusyWatch } from './busy-watch.ts';
import type { Cgroup } from './cgroup.ts';
import { UPLOADS_IN_JAIL } from './jail.ts';
import { LimitWatch } from './limit-watch.ts';
import type { Measurement } from './measure.ts';
import type { SessionFolder } from './session-folder.ts';
import type { Box, BoxEnd, BoxLayout, BoxRecord, BoxResources, Remains, Switch } from './slots.ts';
import { type ExitCode, SIGNAL_EXIT_BASE, type SpawnedChain } from './spawn-chain.ts';

/** How often the server checks whether an adopted box, which is not a child process, is alive. */
const ADOPTED_CHECK_INTERVAL_MS = 250;
const SIGKILL = 9;
const SIGTERM = 15;

export interface RunningBoxOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly session: SessionId;
  readonly record: BoxRecord;
  readonly uid: number | undefined;
  readonly layout: BoxLayout;
  readonly folder: SessionFolder;
  readonly processes: BoxProcesses;
  readonly cgroup: Cgroup;
  /** The loads of all boxes of this process. */
  readonly loads: BoxLoads;
  /** Whether a session has claimed the box already. */
  readonly isClaimed: boolean;
  readonly egress: Server;
  readonly diskBytes: number;
  /** Absent for an adopted box. */
  readonly child?: SpawnedChain;
  /** Frees the slot. */
  readonly releaseSlot: () => void;
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
  readonly whenGone: Promise<BoxEnd>;
  readonly #options: RunningBoxOptions;
  readonly #limitWatch: LimitWatch;
  readonly #busyWatch: BusyWatch;
  readonly #abandonController = new AbortController();
  #boxEnd: BoxEnd | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RunningBoxOptions) {
    this.#options = options;
    this.session = options.session;
    this.record = options.record;
    this.fifoIn = options.folder.fifoIn;
    this.fifoOut = options.folder.fifoOut;
    this.notes = options.folder.notes;
    this.folder = options.folder.box;
    this.folderInBox = options.layout.folder;
    this.uploads = options.folder.uploads;
    this.uploadsInBox = options.layout.hasJail ? UPLOADS_IN_JAIL : options.folder.uploads;
    this.uid = options.uid;
    this.egress = options.egress;
    this.egressPort = options.layout.egressPort;
    this.#limitWatch = new LimitWatch({
      ...options,
      folder: options.folder.box,
      onDiskLimit: measurement => this.#endAtDiskLimit(measurement),
    });
    this.#busyWatch = new BusyWatch(options);
    this.whenGone = this.#waitUntilGone();
  }

  resources(): BoxResources {
    const [cpuMs, peakMemoryBytes] = [this.#options.cgroup.usedMs(), this.#options.cgroup.peakMemoryBytes()];
    return {
      ...(cpuMs === undefined ? {} : { cpuMs }),
      ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
    };
  }

  claim(): void {
    this.#options.cgroup.setShare(1);
    this.#busyWatch.claim();
  }

  stderrTail(): string {
    return this.#options.child?.stderr.text() ?? '';
  }

  /** The pid, on this machine, of the process that is pid 1 in the box's pid namespace. */
  initPid(): number | undefined {
    return this.#options.processes.init?.pid;
  }

  waitUntilAsleep(switchText: Switch, ms: number): Promise<void> {
    return this.#options.processes.waitUntilAsleep(switchText, ms);
  }

  kill(switchText: Switch, ms: number): Promise<void> {
    return this.#options.processes.kill(switchText, ms);
  }

  async end(): Promise<Remains> {
    this.#boxEnd ??= { why: 'closed', detail: 'closed by the server' };
    await this.#options.processes.end();
    await this.whenGone;
    return this.#options.folder.remains();
  }

  close(): Promise<void> {
    this.#boxEnd ??= { why: 'closed', detail: 'closed by the server' };
    this.#closing ??= this.#cleanUp();
    return this.#closing;
  }

  async abandon(): Promise<void> {
    if (this.#closing) return this.#closing;
    this.#closing = Promise.resolve();
    this.#abandonController.abort();
    await this.#limitWatch.close();
    await this.#busyWatch.close();
    this.egress.close();
    this.#options.child?.stderr.close();
    this.#options.child?.process.unref();
    this.#options.releaseSlot();
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  /** For an adopted box, the promise does not settle after `abandon`. */
  async #waitUntilGone(): Promise<BoxEnd> {
    const code = await (this.#options.child?.whenExited ?? this.#waitForAdoptedEnd());
    const end = this.#boxEnd ?? this.#classify(code);
    await this.#options.processes.end().catch(error => this.#logError('box.end_failed', error));
    return end;
  }

  async #waitForAdoptedEnd(): Promise<undefined> {
    while (this.#options.processes.isLeaderAlive() && !this.#abandonController.signal.aborted)
      await this.#options.clock.sleep(ADOPTED_CHECK_INTERVAL_MS, this.#abandonController.signal).catch(() => {});
    return this.#abandonController.signal.aborted ? new Promise(() => {}) : undefined;
  }

  #classify(code: ExitCode | undefined): BoxEnd {
    if (this.#limitWatch.hasRecentMemoryKill() && (code === undefined || code === SIGNAL_EXIT_BASE + SIGKILL))
      return { why: 'out_of_memory', detail: 'killed by the kernel, because the session reached its memory limit' };
    if (code === undefined)
      return { why: 'exited', detail: 'ended; its exit code is unknown, because an earlier server process started it' };
    if (code === SIGNAL_EXIT_BASE + SIGKILL || code === SIGNAL_EXIT_BASE + SIGTERM)
      return {
        why: 'killed',
        detail: `killed by signal ${code - SIGNAL_EXIT_BASE}, either from outside or because the browser reached its maximum lifetime`,
      };
    const description =
      code > SIGNAL_EXIT_BASE ? `crashed with signal ${code - SIGNAL_EXIT_BASE}` : `exited with code ${code}`;
    return { why: 'exited', detail: description };
  }

  #endAtDiskLimit({ stoppedBy: exceededLimit, bytes, entries }: Measurement): void {
    if (this.#boxEnd) return;
    const problem =
      exceededLimit === 'unreadable'
        ? 'cannot be measured, because it has a folder that cannot be read'
        : `exceeded its limit (${exceededLimit})`;
    this.#boxEnd = {
      why: 'disk_limit',
      detail: `the session folder ${problem}: ${bytes} bytes in ${entries} entries`,
    };
    this.#options.processes.end().catch(error => this.#logError('box.end_failed', error));
  }

  /** Runs every step even if one fails: a folder that cannot be removed must not block the slot. */
  async #cleanUp(): Promise<void> {
    const { processes, cgroup, folder, child, releaseSlot } = this.#options;
    const scope = new Scope();
    scope.defer(releaseSlot);
    scope.defer(() => folder.remove());
    scope.defer(() => cgroup.remove());
    scope.defer(() => child?.stderr.close());
    scope.defer(() => void this.egress.close());
    scope.defer(() => this.#limitWatch.close());
    scope.defer(() => this.#busyWatch.close());
    scope.defer(async () => void (await this.whenGone));
    scope.defer(() => processes.end());
    await scope.close();
  }

  #logError(event: string, error: unknown): void {
    this.#options.log.error(event, { session: this.session, reason: reason(error) });
  }
}
