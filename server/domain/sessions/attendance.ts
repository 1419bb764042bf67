// What a watcher prepares for a session, and what is called on it while the session runs and ends.
import type { ReadOnlyMount } from '../../engines/slots/slots.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';
import type { LaunchSettings } from './settings.ts';

/** Time for commands to a browser whose end is decided. A create may wait 15 s for what is saved here. */
export const LAST_WORDS_MS = 10_000;
export const SHUT_DOWN_MS = 6_000;

export interface Preparation extends Omit<LaunchSettings, 'locale'> {
  readonly mounts?: readonly ReadOnlyMount[];
  /** Puts files into the folder before anything runs in it. */
  fill?(place: FillPlace, signal: AbortSignal): Promise<void>;
}

/** The box's own folder: `/session` in a jail. */
export interface FillPlace {
  readonly folder: string;
  /** Owner that the files must have; undefined: the server's user. */
  readonly uid: number | undefined;
}

export interface Attendance {
  /** The end is decided and the clients are gone; the browser still answers. Not called for one that died. */
  lastWords?(end: SessionEnd): Promise<void>;
  /** Nothing more comes from this browser: it is being ended, or, without `end`, left to the next process. */
  leave?(end?: SessionEnd): Promise<void> | void;
  /** All watchers have left: the browser may be shut down cleanly before its box is ended. */
  shutDown?(end: SessionEnd): Promise<void>;
}

export interface Remains {
  /** Hostile: never follow a link in it. */
  readonly folder: string;
  /** The uploads of the session, which are trusted. */
  readonly uploads: string;
  readonly uid: number | undefined;
}
