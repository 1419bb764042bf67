// The preparations of a watcher for a session, and its callbacks while the session is running or ending.
import type { ReadOnlyMount } from '../../engines/slots/slots.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';
import type { LaunchSettings } from './settings.ts';

/** The time limits for watchers before and during the shutdown of a browser that responds. */
export const BEFORE_SHUT_DOWN_TIMEOUT_MS = 10_000;
export const SHUT_DOWN_TIMEOUT_MS = 10_000;

export interface Preparation extends Omit<LaunchSettings, 'locale'> {
  readonly mounts?: readonly ReadOnlyMount[];
  /** Writes files into the folder of the box before the browser runs in it. */
  fill?(place: BoxFolder, signal: AbortSignal): Promise<void>;
}

/** The box's own folder: `/session` in a jail. */
export interface BoxFolder {
  readonly folder: string;
  /** The user id that must own the files. If undefined, the user of the server owns them. */
  readonly uid: number | undefined;
}

export interface Attendance {
  /**
   * Called when the end has been decided and the clients are disconnected, while the browser still responds. Not called
   * if the browser has died.
   */
  beforeShutDown?(end: SessionEnd): Promise<void>;
  /**
   * Called when the watcher must stop observing this browser: it is about to be ended or, without `end`, left to the
   * next process.
   */
  leave?(end?: SessionEnd): Promise<void> | void;
  /**
   * Called after `leave` has been called on all watchers. The watcher may shut down the browser cleanly before its box
   * is ended.
   */
  shutDown?(end: SessionEnd): Promise<void>;
}

/** The folders that remain after all processes of the box have ended. */
export interface Remains {
  /** Untrusted: never follow a symbolic link in it. */
  readonly folder: string;
  /** The uploads of the session, which only the server writes. */
  readonly uploads: string;
  readonly uid: number | undefined;
}
