// What a session is made of, as the domain sees it: types of the engines, never their code. server/wiring/browser-host.ts hands the real ones in.
import type { Browser } from '../../engines/browser/browser.ts';
import type { EgressCounters, EgressListener } from '../../engines/egress/egress.ts';
import type { EgressPolicy } from '../../engines/egress/policy.ts';
import type { Box, BoxRecord, Slots } from '../../engines/slots/slots.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Preparation } from './attendance.ts';
import type { LaunchSettings } from './settings.ts';

export type { BrowserClient } from '../../engines/browser/browser.ts';
export type { ReadLongMessage as ReadLong } from '../../engines/browser/envelope-job.ts';
export type {
  ClientListener,
  Command,
  CommandTap,
  Policy,
  TappedCommand as Overheard,
  Verdict,
} from '../../engines/browser/mux-client.ts';
export type { ObservedTarget } from '../../engines/browser/observation.ts';
export type { BoxRecord, Browser };

/** The egress proxy of one browser. */
export interface SessionEgress extends Closeable {
  /** Whose browser it is: from now on that session's own connect address leads to it. */
  assign(session: SessionId): void;
  /** The session's network is open from now on, with this policy. Before, nothing can be reached. */
  open(policy: EgressPolicy, listener: EgressListener): void;
  replacePolicy(policy: EgressPolicy): void;
  counters(): EgressCounters;
}

export interface BoxStart {
  /** Names the box. */
  readonly id: SessionId;
  readonly launch: LaunchSettings;
  /** Nobody waits for it: it must not slow anything that somebody waits for. */
  readonly background: boolean;
  /** What watchers want it to find in its box. */
  readonly preparation?: Pick<Preparation, 'mounts' | 'fill'>;
}

export interface BrowserHost {
  readonly slots: Slots;
  /** Names the program that would be started now; undefined in the moment in which it is being replaced. */
  edition(launch: LaunchSettings): string | undefined;
  /** Starts Chromium in a free slot; it is running when this returns, not yet asked anything. */
  startBox(start: BoxStart, signal: AbortSignal): Promise<Box>;
  meetBrowser(box: Box, signal: AbortSignal): Promise<Browser>;
  adoptBrowser(box: Box, signal: AbortSignal): Promise<Browser>;
  openEgress(box: Box): SessionEgress;
}
