// Wiring of the live view: who may look and drive, and whose pictures they see.
import type { Config } from '../config.ts';
import type { KeyUses } from '../domain/identity/key-uses.ts';
import type { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import { LiveLinks } from '../domain/live/links.ts';
import { LiveView, type LiveViewParts } from '../domain/live/live-view.ts';
import type { WatchPage } from '../domain/live/viewing.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import type { Pictures } from '../engines/recorder/pictures.ts';
import type { Store } from '../engines/store/store.ts';
import { LiveEntry } from '../entry/live/live-entry.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';
import type { Secret } from '../kit/secret.ts';

export interface LiveWish {
  readonly config: Config;
  readonly store: Store;
  readonly lives: LiveSessions;
  readonly secret: Secret;
  readonly keyUses: KeyUses;
  readonly pictures: Pictures;
  readonly linkTo: LiveViewParts['linkTo'];
  readonly waiting: WaitingBytes;
  readonly clock: Clock;
  readonly log: Log;
}

export function openLive({ config, store, lives, secret, keyUses, pictures, linkTo, waiting, clock, log }: LiveWish) {
  const { controls, sessions, events } = store;
  const links = new LiveLinks(secret, clock);
  const { publicUrl } = config;
  const watchPage: WatchPage = (...wanted) => pictures.watch(...wanted);
  const view = new LiveView({
    ...{ rows: controls, sessions, events, lives, links, keyUses, publicUrl, watchPage, linkTo, clock, log },
  });
  return { view, entry: new LiveEntry({ live: view, keyUses, waiting, clock, log }) };
}
