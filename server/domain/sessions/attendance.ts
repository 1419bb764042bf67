// What a watcher gives a session: what its browser must find, and what is called while it runs and ends.
import type { ReadOnlyMount } from '../../engines/slots/slots.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';
import type { LaunchSettings } from './settings.ts';

/** What a watcher may still ask of a browser whose end is decided. A create may wait 15 s for what is saved here. */
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
  /** Whose the files must be; undefined: ours. */
  readonly uid: number | undefined;
}

export interface Attendance {
  /** The end is decided and the clients are gone; the browser still answers. Not called for one that died. */
  lastWords?(end: SessionEnd): Promise<void>;
  /** Nothing more comes from this browser here: it is being ended, or, without an end, left to a successor. */
  leave?(end?: SessionEnd): Promise<void> | void;
  /** All have left: the browser may be closed in its own way, before it is ended in ours. */
  shutDown?(end: SessionEnd): Promise<void>;
}

export interface Remains {
  /** Hostile: never follow a link in it. */
  readonly folder: string;
  /** The uploads of the session, which are ours. */
  readonly uploads: string;
  readonly uid: number | undefined;
}
