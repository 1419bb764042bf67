// The wiring of the live view: who may watch and control, and which frames viewers get.
import type { KeyUses } from '../domain/identity/key-uses.ts';
import type { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import { LiveLinks } from '../domain/live/links.ts';
import { LiveView, type LiveViewParts } from '../domain/live/live-view.ts';
import type { WatchPage } from '../domain/live/viewing.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import type { LiveFrames } from '../engines/recorder/live-frames.ts';
import { LiveEntry } from '../entry/live/live-entry.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface LiveDeps {
  readonly liveSessions: LiveSessions;
  readonly keyUses: KeyUses;
  readonly liveFrames: LiveFrames;
  readonly linkTo: LiveViewParts['linkTo'];
  readonly waitingBytes: WaitingBytes;
}

export function openLive({ clock, log }: Runtime, { config, store, secret, audit }: Foundation, deps: LiveDeps) {
  const { liveSessions, keyUses, liveFrames, linkTo, waitingBytes } = deps;
  const { controls, handoffs, sessions, events } = store;
  const links = new LiveLinks(secret, clock);
  const { publicUrl } = config;
  const watchPage: WatchPage = (...args) => liveFrames.watch(...args);
  const view = new LiveView({
    ...{
      rows: controls,
      handoffs,
      leases: { store, events, audit, clock, log },
      sessions,
      events,
      liveSessions,
      links,
      keyUses,
      publicUrl,
      watchPage,
      linkTo,
      coverFrames: (session, on) => liveFrames.cover(session, on),
      clock,
      log,
    },
  });
  return { service: view, watcher: view, entry: new LiveEntry({ liveView: view, keyUses, waitingBytes, clock, log }) };
}
