// Control of one session by a person: a lease with a fence, in the hand-off that is open. A viewer who takes control unasked has a
// hand-off of origin `viewer`. There is one instance for each session that runs on this host; the transactions decide.

import { randomUUID } from 'node:crypto';
import type { AuditAction } from '../../../contract/audit.ts';
import type { NavigationRule } from '../../engines/browser/navigation-guard.ts';
import type { Actor, EventRows, SessionEventType } from '../../engines/store/rows/events.ts';
import type { HandoffChange, HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { Atomic, Store } from '../../engines/store/store.ts';
import { plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { type ApplicationId, type HandoffId, type KeyId, newId, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Secret } from '../../kit/secret.ts';
import { within } from '../../kit/wait.ts';
import type { Audit, AuditSource, Detail } from '../audit/audit.ts';
import { notFound, sessionNotRunning } from '../faults.ts';
import { mint } from '../identity/credentials.ts';
import type { Cover } from '../sessions/live.ts';
import { type AgentInput, AgentQueue, type InputVerdict } from './agent-queue.ts';
import { handoffClaimed, handoffEnded, handoffExists, staleFence } from './faults.ts';

/** Of a viewer who took control unasked: renewed while the live view is open. After a disconnect, the rest is the time to reconnect. */
export const LEASE_MS = 30_000;
/** A person whose live view is closed for longer has left the hand-off. */
export const GONE_MS = 60_000;
const SETTLE_MS = 2_000;

export const BY_CLOCK: AuditSource = { actor: { kind: 'service' } };
const CLOCK: Actor = { kind: 'clock' };

/** A person's control. */
export interface Control {
  readonly handoffId: HandoffId;
  /** False: a viewer took control unasked. */
  readonly isAsked: boolean;
  readonly holder: string;
  readonly fence: number;
  readonly expiresAt: Date;
  /** Pages must not be read by the agent. */
  readonly masks: boolean;
  readonly allowedOrigins: readonly string[] | undefined;
}

/** Who claims a hand-off, verified by the caller. */
export interface Claimer {
  readonly kind: 'account' | 'link';
  readonly id?: string;
  readonly source: AuditSource;
}

export interface Done {
  readonly outcome: 'completed' | 'declined' | 'failed';
  readonly note?: string;
  readonly evidence?: JsonObject;
  readonly url?: string;
}

/** An event for the clients of the agent. */
export interface Notice {
  readonly method: string;
  readonly params: JsonObject;
}

/** The session that is leased. */
export interface LeasedSession {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  setCover(cover: Cover | undefined): void;
  readonly browser: {
    /** Documents that the rule does not allow are not loaded until the result is closed. */
    guardNavigationsForNow(rule: NavigationRule): Promise<Closeable>;
  };
  hold(): { close(): void };
}

export interface LeaseParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'atomically'>;
  readonly events: Pick<EventRows, 'append'>;
  readonly audit: Pick<Audit, 'record'>;
}

export class Lease {
  readonly #parts: LeaseParts;
  readonly #session: LeasedSession;
  readonly #agentInput: AgentInput;
  readonly #keyId: KeyId | undefined;
  readonly #queue: AgentQueue;
  readonly #listeners = new Set<() => void>();
  readonly #settling = new Set<() => Promise<void>>();
  readonly #agents = new Set<(notice: Notice) => void>();
  readonly #closed = new AbortController();
  #row: HandoffRow | undefined;
  #control: Control | undefined;
  /** Live views of the person in control. */
  #attached = 0;
  #goneAt: Date | undefined;
  #hold: { close(): void } | undefined;
  #guard: Closeable | undefined;
  #watch = new AbortController();
  /** Changes are made one after another, so that what is remembered here is what was committed last. */
  #turn: Promise<unknown> = Promise.resolve();

  /** `keyId`: the agent key that created the session. */
  constructor(parts: LeaseParts, session: LeasedSession, agentInput: AgentInput, keyId?: KeyId) {
    this.#parts = parts;
    this.#session = session;
    this.#agentInput = agentInput;
    this.#keyId = keyId;
    this.#queue = new AgentQueue(parts.clock);
  }

  /** Continues what an earlier process has left. */
  async adopt(row: HandoffRow | undefined): Promise<void> {
    if (!row) return;
    if (row.status === 'claimed') await this.#openGuard(row);
    this.#goneAt = plus(this.#parts.clock.now(), GONE_MS);
    this.#set(row);
  }

  /** The hand-off that is open, asked for or not. */
  get open(): HandoffRow | undefined {
    return this.#row;
  }

  /** A person's control, or undefined while the agent has control. */
  get control(): Control | undefined {
    return this.#control;
  }

  /** Whether somebody was asked, so that the session waits for them. */
  get isAsked(): boolean {
    return this.#row !== undefined && this.#row.origin !== 'viewer';
  }

  /** Calls the listener when control, or the hand-off that is open, changes. */
  onChange(listener: () => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /** Calls the listener with what the agent is told. */
  onNotice(listener: (notice: Notice) => void): { close(): void } {
    this.#agents.add(listener);
    return { close: () => void this.#agents.delete(listener) };
  }

  /** Whether input that was sent under this fence may still be dispatched. */
  isFresh(fence: number): boolean {
    return this.#control?.fence === fence && this.#control.expiresAt > this.#parts.clock.now();
  }

  /** Called before control ends by the person's will: resolves when their input so far was sent to the browser. */
  onSettling(settled: () => Promise<void>): { close(): void } {
    this.#settling.add(settled);
    return { close: () => void this.#settling.delete(settled) };
  }

  /** Decides what happens to a command of the agent that must not run while a person has control. */
  judgeInput(method: string): InputVerdict {
    const control = this.#control;
    if (!control) return 'pass';
    return this.#queue.judge(method, this.#agentInput, control.isAsked ? control.handoffId : undefined);
  }

  // ---- a viewer who takes control unasked ------------------------------------------------------------------------------

  /**
   * Undefined if another person has control, or is asked to take it. The fence is stored before this returns. A holder that
   * takes control again gets a higher fence.
   */
  async take(holder: string): Promise<Control | undefined> {
    const before = this.#control?.holder;
    const row = await this.#transact(async (within, { fence, runs }, open) => {
      if (!runs || (open && (open.origin !== 'viewer' || open.holder !== holder))) return undefined;
      const now = this.#parts.clock.now();
      const lease = { fence: fence + 1, leaseExpiresAt: plus(now, LEASE_MS) };
      await within.controls.setFence(this.#session.id, lease.fence);
      if (open) return within.handoffs.change(open.id, lease);
      const row = { ...this.#unasked(holder, now), ...lease };
      await within.handoffs.insert(row);
      return row;
    }, this.#remember);
    if (!row) {
      this.#recordEvent('control.refused', { why: this.#row ? 'held' : 'not_running' });
      return undefined;
    }
    if (before !== holder) this.#recordEvent('control.taken', { fence: row.fence });
    return this.#control;
  }

  /** False if control has ended. */
  async renewTaken({ holder, fence }: Pick<Control, 'holder' | 'fence'>): Promise<boolean> {
    if (!this.isFresh(fence)) return false;
    const row = await this.#transact(async (within, _, open) => {
      if (open?.fence !== fence || open.holder !== holder || open.status !== 'claimed') return undefined;
      return within.handoffs.change(open.id, { leaseExpiresAt: plus(this.#parts.clock.now(), LEASE_MS) });
    }, this.#rememberIf(fence));
    return row !== undefined && this.isFresh(fence);
  }

  /** A viewer gives control back; a hand-off then waits for another person. */
  async giveBack(fence: number): Promise<void> {
    if (this.#control?.fence !== fence) return;
    if (this.#settling.size > 0) await this.#inputSent();
    if (this.#control?.isAsked) return this.#return(fence, { kind: 'viewer' }, BY_CLOCK);
    await this.#endTaken(fence, 'completed', 'control.given_back', { kind: 'viewer' });
  }

  // ---- hand-offs -------------------------------------------------------------------------------------------------------

  async request(row: HandoffRow, source: AuditSource, actor: Actor): Promise<HandoffRow> {
    const asked = await this.#transact(async (within, { fence, runs }, open) => {
      if (!runs) throw sessionNotRunning(this.#session.id, 'ending');
      if (open) throw handoffExists(open);
      const asked = { ...row, fence };
      await within.handoffs.insert(asked);
      await this.#audit(within, 'handoff.requested', asked, source, { origin: row.origin, reason: row.reason });
      return asked;
    }, this.#remember);
    this.#recordEvent('handoff.requested', { ...shown(asked), reason: asked.reason }, actor);
    this.#tell('Berth.handoffRequested', { handoffId: asked.id, expiresAt: asked.expiresAt.toISOString() });
    return asked;
  }

  /** The fence is committed, and the agent is held back, before this returns. */
  async claim(id: HandoffId, claimer: Claimer): Promise<{ row: HandoffRow; token: Secret }> {
    const token = mint('handoff_lease');
    const row = await this.#transact(async (within, { fence, runs }, open) => {
      if (!open || open.id !== id) throw await this.#notOpen(within, id);
      if (open.status === 'claimed') throw handoffClaimed(open);
      if (!runs) throw sessionNotRunning(this.#session.id, 'ending');
      const now = this.#parts.clock.now();
      const claimed = await within.handoffs.change(id, {
        ...{ status: 'claimed', fence: fence + 1, holder: randomUUID(), holderKind: claimer.kind },
        ...{ holderId: claimer.id ?? null, leaseHash: token.hash, claimedAt: now },
        leaseExpiresAt: plus(now, 1000 * open.leaseSeconds),
      });
      if (!claimed) throw notFound('Hand-off', id);
      await within.controls.setFence(this.#session.id, claimed.fence);
      await this.#audit(within, 'handoff.claimed', claimed, claimer.source);
      return claimed;
    }, this.#remember);
    try {
      await this.#openGuard(row);
    } catch (error) {
      await this.#return(row.fence, { kind: 'service' }, BY_CLOCK);
      throw error;
    }
    this.#recordEvent('handoff.claimed', { ...shown(row), by: claimer.kind }, viewerOf(row));
    this.#tell('Berth.handoffClaimed', { handoffId: row.id });
    return { row, token: token.text };
  }

  async renew(id: HandoffId, fence: number, source: AuditSource): Promise<HandoffRow> {
    const row = await this.#transact(async (within, _, open) => {
      if (!isHeld(open, id, fence)) throw staleFence(id);
      const renewed = await within.handoffs.change(id, {
        leaseExpiresAt: plus(this.#parts.clock.now(), 1000 * open.leaseSeconds),
      });
      await this.#audit(within, 'handoff.renewed', open, source);
      return renewed;
    }, this.#rememberIf(fence));
    if (!row) throw staleFence(id);
    if (this.#goneAt) this.#goneAt = plus(this.#parts.clock.now(), GONE_MS);
    this.#arm();
    return row;
  }

  async complete(id: HandoffId, fence: number, done: Done, source: AuditSource): Promise<HandoffRow> {
    const { outcome, ...rest } = done;
    if (this.#control?.fence === fence) await this.#inputSent();
    const row = await this.#end(id, fence, { status: outcome, ...rest }, 'handoff.completed', source, { outcome });
    this.#recordEvent('handoff.completed', { ...shown(row), outcome }, viewerOf(row));
    this.#tell('Berth.handoffComplete', { handoffId: id, ...done });
    return row;
  }

  /** Before its end, by whoever may. */
  async cancel(id: HandoffId, source: AuditSource, actor: Actor): Promise<HandoffRow> {
    const row = await this.#end(id, undefined, { status: 'cancelled' }, 'handoff.cancelled', source);
    this.#recordEvent('handoff.cancelled', shown(row), actor);
    this.#tell('Berth.handoffComplete', { handoffId: id, outcome: 'cancelled' });
    return row;
  }

  /** The person gives the lease back; the hand-off waits for another one. */
  async returnLease(id: HandoffId, fence: number, source: AuditSource): Promise<void> {
    if (this.#row?.id !== id || this.#control?.fence !== fence) throw staleFence(id);
    const actor = viewerOf(this.#row);
    await this.#inputSent();
    await this.#return(fence, actor, source);
  }

  /** A live view of the person in control was opened. */
  attached(): { close(): void } {
    this.#attached++;
    this.#goneAt = undefined;
    this.#arm();
    return {
      close: () => {
        if (--this.#attached > 0) return;
        this.#goneAt = plus(this.#parts.clock.now(), GONE_MS);
        this.#arm();
      },
    };
  }

  /** The session has ended, or is left to the next process. */
  async close(hasEnded: boolean): Promise<void> {
    const row = this.#row;
    this.#closed.abort(new Error('the session leaves'));
    this.#watch.abort();
    if (hasEnded && row) await this.#sessionEnded(row).catch(error => this.#notWritten(error));
    this.#queue.release();
    this.#hold?.close();
    this.#listeners.clear();
    this.#agents.clear();
  }

  async #sessionEnded({ id, origin }: HandoffRow): Promise<void> {
    await this.#transact(async (within, { fence }, open) => {
      if (open?.id !== id) return;
      await within.controls.setFence(this.#session.id, fence + 1);
      await within.handoffs.change(id, { ...ended('session_ended', this.#parts.clock.now()), fence: fence + 1 });
    });
    if (origin !== 'viewer') this.#tell('Berth.handoffComplete', { handoffId: id, outcome: 'session_ended' });
  }

  /** A page that hangs delays the end by no more than this. */
  async #inputSent(): Promise<void> {
    const all = Promise.all([...this.#settling].map(settled => settled()));
    await within(SETTLE_MS, 'the input of the person', () => all.then(() => {})).catch(() => {});
  }

  // ---- ends ------------------------------------------------------------------------------------------------------------

  /** `fence`: only under this one. Undefined: whoever has control. */
  async #end(
    id: HandoffId,
    fence: number | undefined,
    change: HandoffChange & { readonly status: HandoffRow['status'] },
    action: AuditAction,
    source: AuditSource,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<HandoffRow> {
    return this.#transact(
      async (within, locked, open) => {
        if (fence !== undefined && !isHeld(open, id, fence)) throw staleFence(id);
        if (open?.id !== id) throw await this.#notOpen(within, id);
        const end = { ...change, ...ended(change.status, this.#parts.clock.now()), fence: locked.fence + 1 };
        const row = await within.handoffs.change(id, end);
        if (!row) throw notFound('Hand-off', id);
        await within.controls.setFence(this.#session.id, end.fence);
        await this.#audit(within, action, row, source, details);
        return row;
      },
      () => this.#set(undefined),
      action === 'handoff.expired',
    );
  }

  /** Back in the queue, or over if its time is. */
  async #return(fence: number, actor: Actor, source: AuditSource): Promise<void> {
    const row = await this.#transact(
      async (within, locked, open) => {
        if (open?.fence !== fence || open.status !== 'claimed') return undefined;
        return this.#returned(within, locked.fence, open, source);
      },
      row => this.#set(row?.status === 'requested' ? row : undefined),
      true,
    );
    if (!row) return;
    this.#recordEvent(row.status === 'requested' ? 'handoff.returned' : 'handoff.expired', shown(row), actor);
    if (row.status === 'requested')
      this.#tell('Berth.handoffRequested', { handoffId: row.id, expiresAt: row.expiresAt.toISOString() });
    else this.#tell('Berth.handoffComplete', { handoffId: row.id, outcome: 'expired' });
  }

  async #returned(within: Atomic, fence: number, open: HandoffRow, source: AuditSource): Promise<HandoffRow> {
    const now = this.#parts.clock.now();
    const isOver = open.expiresAt <= now;
    const lease = { leaseHash: null, leaseExpiresAt: null, holder: null, fence: fence + 1 };
    const change = isOver ? { ...lease, ...ended('expired', now) } : { ...lease, status: 'requested' as const };
    const row = await within.handoffs.change(open.id, change);
    if (!row) throw notFound('Hand-off', open.id);
    await within.controls.setFence(this.#session.id, row.fence);
    await this.#audit(within, isOver ? 'handoff.expired' : 'handoff.returned', row, source);
    return row;
  }

  async #expire(id: HandoffId): Promise<void> {
    try {
      const row = await this.#end(id, undefined, { status: 'expired' }, 'handoff.expired', BY_CLOCK);
      this.#recordEvent('handoff.expired', shown(row), CLOCK);
      this.#tell('Berth.handoffComplete', { handoffId: id, outcome: 'expired' });
    } catch (error) {
      this.#notWritten(error);
      if (this.#row?.id === id) this.#set(undefined);
    }
  }

  /** Ends here even if the database cannot be written. */
  async #endTaken(
    fence: number,
    status: 'completed' | 'expired',
    type: 'control.given_back' | 'control.expired',
    actor: Actor,
  ): Promise<void> {
    if (this.#control?.fence !== fence) return;
    this.#control = undefined;
    this.#watch.abort();
    await this.#transact(
      async (within, locked, open) => {
        if (open?.fence !== fence) return;
        await within.controls.setFence(this.#session.id, locked.fence + 1);
        await within.handoffs.change(open.id, { ...ended(status, this.#parts.clock.now()), fence: locked.fence + 1 });
      },
      undefined,
      true,
    ).catch(error => this.#notWritten(error));
    this.#recordEvent(type, { fence }, actor);
    if (!this.#control) this.#set(undefined);
  }

  // ---- what is remembered ----------------------------------------------------------------------------------------------

  readonly #remember = (row: HandoffRow | undefined): void => {
    if (row) this.#set(row);
  };

  /** Control may have ended while the change was written. */
  readonly #rememberIf =
    (fence: number) =>
    (row: HandoffRow | undefined): void => {
      if (row && this.#control?.fence === fence) this.#set(row);
    };

  #set(row: HandoffRow | undefined): void {
    const before = { id: this.#row?.id, status: this.#row?.status, fence: this.#control?.fence };
    const control = row && controlOf(row);
    this.#row = row;
    this.#control = control;
    if (control && control.fence !== before.fence && control.isAsked && this.#attached === 0) this.#goneAt = undefined; // The first live view may be opened at any time of the lease.
    this.#session.setCover(control?.isAsked && row?.record !== 'keep' ? (row?.record as Cover) : undefined);
    if (this.isAsked) this.#hold ??= this.#session.hold();
    else this.#letGo();
    if (!control) this.#closeGuard();
    this.#arm();
    if (!control) this.#queue.release();
    if (row?.id === before.id && row?.status === before.status && control?.fence === before.fence) return;
    for (const listener of [...this.#listeners]) listener();
  }

  #letGo(): void {
    this.#hold?.close();
    this.#hold = undefined;
  }

  async #openGuard({ allowedOrigins }: HandoffRow): Promise<void> {
    if (!allowedOrigins) return;
    const guard = await this.#session.browser.guardNavigationsForNow(onlyOrigins(allowedOrigins));
    this.#closeGuard();
    this.#guard = guard;
  }

  #closeGuard(): void {
    const guard = this.#guard;
    this.#guard = undefined;
    if (guard) Promise.resolve(guard.close()).catch(error => this.#notWritten(error));
  }

  #arm(): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    const row = this.#row;
    if (row && !this.#closed.signal.aborted)
      void this.#endWhenDue(row, AbortSignal.any([this.#watch.signal, this.#closed.signal]));
  }

  async #endWhenDue(row: HandoffRow, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const leftMs = this.#dueAt(row).getTime() - clock.now().getTime();
      if (leftMs > 0) await clock.sleep(leftMs, signal).catch(() => {});
      else if (row.status === 'requested') return this.#expire(row.id);
      else if (row.origin === 'viewer') return this.#endTaken(row.fence, 'expired', 'control.expired', CLOCK);
      else return this.#return(row.fence, CLOCK, BY_CLOCK).catch(error => this.#lost(row, error));
    }
  }

  #dueAt({ status, expiresAt, leaseExpiresAt = expiresAt, origin }: HandoffRow): Date {
    if (status === 'requested') return expiresAt;
    const goneAt = origin === 'viewer' ? undefined : this.#goneAt;
    return goneAt && goneAt < leaseExpiresAt ? goneAt : leaseExpiresAt;
  }

  /** The lease is over although the database could not be written: the next change there finds it expired. */
  #lost({ fence }: HandoffRow, error: unknown): void {
    this.#notWritten(error);
    if (this.#control?.fence === fence) this.#set(undefined);
  }

  // ---- transactions ----------------------------------------------------------------------------------------------------

  /** `committed` is called with the result before the next change begins. `isForEnd`: the work ends what is over itself. */
  #transact<T>(
    work: (within: Atomic, locked: { fence: number; runs: boolean }, open: HandoffRow | undefined) => Promise<T>,
    committed: (result: T) => void = () => {},
    isForEnd = false,
  ): Promise<T> {
    const { store } = this.#parts;
    const { id, applicationId } = this.#session;
    const change = async (): Promise<T> => {
      const result = await store.atomically(async within => {
        const locked = await within.controls.lockFence(applicationId, id);
        if (!locked) throw notFound('Session', id);
        const open = await within.handoffs.openOf(id);
        if (!open || isForEnd) return work(within, locked, open);
        const settled = await this.#settled(within, locked.fence, open);
        return work(within, { ...locked, fence: settled.fence }, settled.open);
      });
      committed(result);
      return result;
    };
    const done = this.#turn.then(change);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** A lease or a request that is over, although nobody could write that down in time. */
  async #settled(
    within: Atomic,
    fence: number,
    open: HandoffRow,
  ): Promise<{ readonly fence: number; readonly open: HandoffRow | undefined }> {
    const now = this.#parts.clock.now();
    const isOver = (open.leaseExpiresAt ?? open.expiresAt) <= now;
    if (!isOver || this.#closed.signal.aborted) return { fence, open };
    if (open.status === 'claimed' && open.origin !== 'viewer') {
      const row = await this.#returned(within, fence, open, BY_CLOCK);
      return { fence: row.fence, open: row.status === 'requested' ? row : undefined };
    }
    await within.handoffs.change(open.id, { ...ended('expired', now), fence: fence + 1 });
    await within.controls.setFence(this.#session.id, fence + 1);
    return { fence: fence + 1, open: undefined };
  }

  async #notOpen(within: Atomic, id: HandoffId): Promise<Error> {
    const row = await within.handoffs.get(this.#session.applicationId, id);
    return row ? handoffEnded(row) : notFound('Hand-off', id);
  }

  #unasked(holder: string, now: Date): HandoffRow {
    const { id: sessionId, applicationId } = this.#session;
    return {
      ...{ id: newId<HandoffId>(now), applicationId, sessionId, origin: 'viewer', status: 'claimed' },
      ...{ instructions: '', reason: 'other', claimableBy: 'viewer', record: 'keep', leaseSeconds: LEASE_MS / 1000 },
      ...{ fence: 0, requesterKind: 'viewer', createdAt: now, expiresAt: plus(now, LEASE_MS), claimTries: 0 },
      ...{ holder, holderKind: 'viewer', claimedAt: now },
      ...(this.#keyId ? { keyId: this.#keyId } : {}),
    };
  }

  // ---- telling ---------------------------------------------------------------------------------------------------------

  #audit(
    within: Atomic,
    action: AuditAction,
    row: HandoffRow,
    source: AuditSource,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<void> {
    const holder = row.holderKind
      ? { holderKind: row.holderKind, ...(row.holderId ? { holder: row.holderId } : {}) }
      : {};
    return this.#parts.audit.record(
      {
        ...{ ...source, action, applicationId: row.applicationId, outcome: 'success' },
        target: { kind: 'handoff', id: row.id },
        details: { sessionId: row.sessionId, fence: row.fence, ...holder, ...details },
      },
      within,
    );
  }

  #tell(method: string, params: JsonObject): void {
    const notice: Notice = { method, params };
    for (const tell of [...this.#agents]) tell(notice);
  }

  #notWritten(error: unknown): void {
    this.#parts.log.warn('control.end_not_written', { sessionId: this.#session.id, reason: reason(error) });
  }

  #recordEvent(type: SessionEventType, detail: JsonObject, actor: Actor = { kind: 'viewer' }): void {
    const { events, clock, log } = this.#parts;
    events
      .append(this.#session.id, { type, at: clock.now(), actor, detail })
      .catch(error => log.warn('session.event_not_written', { sessionId: this.#session.id, error }));
  }
}

/** Frames inside of a page may be of any origin. */
const onlyOrigins = (origins: readonly string[]): NavigationRule => ({
  allows: (_hostname, frame, url) => frame === 'inner' || origins.includes(URL.parse(url)?.origin ?? ''),
  onRefused: () => {},
});

function controlOf(row: HandoffRow): Control | undefined {
  const { id, origin, status, holder, fence, leaseExpiresAt, record, allowedOrigins } = row;
  if (status !== 'claimed' || holder === undefined || !leaseExpiresAt) return undefined;
  const isAsked = origin !== 'viewer';
  const masks = isAsked && record !== 'keep';
  return { handoffId: id, isAsked, holder, fence, expiresAt: leaseExpiresAt, masks, allowedOrigins };
}

const isHeld = (open: HandoffRow | undefined, id: HandoffId, fence: number): open is HandoffRow =>
  open?.id === id && open.fence === fence && open.status === 'claimed';

const ended = (status: HandoffRow['status'], endedAt: Date) => ({
  ...{ status, endedAt, leaseHash: null, leaseExpiresAt: null, claimHash: null, holder: null },
});

const shown = ({ id, fence }: HandoffRow): JsonObject => ({ handoffId: id, fence });

const viewerOf = ({ holderId }: HandoffRow): Actor => ({
  kind: 'viewer',
  ...(holderId === undefined ? {} : { id: holderId }),
});
