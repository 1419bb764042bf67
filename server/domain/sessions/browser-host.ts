// The interfaces of the engines that the session domain uses, as types only. server/wiring/browser-host.ts passes in
// the implementations.
import type { Browser } from '../../engines/browser/browser.ts';
import type { EgressCounters, EgressListener } from '../../engines/egress/egress.ts';
import type { EgressPolicy } from '../../engines/egress/policy.ts';
import type { Box, BoxRecord, Slots } from '../../engines/slots/slots.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Preparation } from './attendance.ts';
import type { LaunchSettings } from './settings.ts';

export type { BrowserClient } from '../../engines/browser/browser.ts';
export type { LongMessageReader as ReadLongMessage } from '../../engines/browser/envelope-job.ts';
export type {
  ClientListener,
  Command,
  CommandTap,
  Policy,
  TappedCommand as ObservedCommand,
  Verdict,
} from '../../engines/browser/mux-client.ts';
export type { ObservedTarget } from '../../engines/browser/observation.ts';
export type { BoxRecord, Browser };

/** The egress proxy of one browser. */
export interface SessionEgress extends Closeable {
  /** Assigns the browser to a session. The session's own connect address is then routed back to this server. */
  assign(session: SessionId): void;
  /** Opens the network with this policy. Before this, no address can be reached. */
  open(policy: EgressPolicy, listener: EgressListener): void;
  replacePolicy(policy: EgressPolicy): void;
  counters(): EgressCounters;
}

export interface BoxStart {
  /** The name of the box. */
  readonly id: SessionId;
  readonly launch: LaunchSettings;
  /** True if no caller is waiting for the box. Starting it must then not slow down other sessions. */
  readonly background: boolean;
  /** The mounts and files that watchers prepare in the box. */
  readonly preparation?: Pick<Preparation, 'mounts' | 'fill'>;
}

export interface BrowserHost {
  readonly slots: Slots;
  /** Identifies the program that would be started now. Undefined while the program is being replaced. */
  programId(launch: LaunchSettings): string | undefined;
  /** Starts Chromium in a free slot. Resolves when the box is running, before anything is sent to it. */
  startBox(start: BoxStart, signal: AbortSignal): Promise<Box>;
  /** Connects to a Chromium that was just started. Resolves when its first page exists, within `ms`. */
  connectBrowser(box: Box, ms: number, signal: AbortSignal): Promise<Browser>;
  adoptBrowser(box: Box, signal: AbortSignal): Promise<Browser>;
  openEgress(box: Box): SessionEgress;
}
