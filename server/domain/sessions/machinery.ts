// What a session is made of, as the domain sees it: types of the engines, never their code. parts.ts hands the real ones in.
import type { Server } from 'node:net';
import type { Browser } from '../../engines/browser/browser.ts';
import type { Box, BoxRecord, Slots } from '../../engines/slots/slots.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

export type { BrowserClient } from '../../engines/browser/browser.ts';
export type { Json, JsonObject } from '../../engines/browser/json.ts';
export type { ClientListener, Command, Policy, Verdict } from '../../engines/browser/mux-client.ts';
export type { BoxRecord, Browser };

export interface EgressWish {
  readonly session: SessionId;
  readonly server: Server;
}

export interface Machinery {
  readonly slots: Slots;
  /** Starts Chromium in a free slot; it is running when this returns, not yet asked anything. */
  startBox(session: SessionId, signal: AbortSignal): Promise<Box>;
  meetBrowser(box: Box, signal: AbortSignal): Promise<Browser>;
  adoptBrowser(box: Box, signal: AbortSignal): Promise<Browser>;
  openEgress(wish: EgressWish): Closeable;
}
