// The cells of the table in tests/acceptance/clients.test.ts, and the pages that they open. A cell combines a browser
// context (the default one, or one of its own) with a way of opening pages. What a client received is recorded in
// tracks, so that two browsers can be compared.
import type { KnownDifferences } from './known-differences.ts';

export const WAYS = ['page', 'newWindow', 'popup', 'window.open', 'window.open with noopener'] as const;
export type Way = (typeof WAYS)[number];

/** One browser context and one way of opening pages. A cell opens one page, then another, then three at once. */
export interface Cell {
  readonly ownContext: boolean;
  readonly way: Way;
}

export const CELLS: readonly Cell[] = [false, true].flatMap(ownContext => WAYS.map(way => ({ ownContext, way })));

/**
 * What a client received about each subject, in order. Events of different tracks race in Chromium, so tracks are not
 * ordered relative to each other.
 */
export type Tracks = ReadonlyMap<string, readonly string[]>;

/** Returns the tracks without the known differences. */
export type TracksReader = (known: KnownDifferences) => Tracks;

/** A connected client that can run a cell. */
export interface Driver {
  run(cell: Cell): Promise<TracksReader>;
  close(): Promise<void>;
}

const PAGE_COUNTS = [1, 1, 3] as const;
const WINDOW_ARGUMENTS: Readonly<Partial<Record<Way, string>>> = {
  popup: "'', 'width=400,height=300'",
  'window.open': "'_blank'",
  'window.open with noopener': "'_blank', 'noopener'",
};

/**
 * The base page registers a service worker, and its title changes when the worker is active. The title of a cell page
 * changes when its script has finished.
 */
export const CELL_PAGES = {
  '/base': `<!doctype html><title>Loading</title><script>
    addEventListener('load', async () => {
      const { installing } = await navigator.serviceWorker.register('/worker.js', { scope: '/nowhere/' });
      installing.onstatechange = () => { if (installing.state === 'activated') document.title = 'Base'; };
    });
  </script>`,
  '/worker.js': (
    _: unknown,
    response: { setHeader(name: string, value: string): unknown; end(text: string): unknown },
  ) => {
    response.setHeader('content-type', 'text/javascript');
    response.end("console.log('in the worker', navigator.onLine, location.pathname);");
  },
  '/cell': `<!doctype html><title>Cell</title><script>
    console.log('first', location.search, opener !== null, innerWidth, innerHeight, name, history.length);
    addEventListener('load', () => setTimeout(async () => {
      console.log('data', await (await fetch('/data' + location.search)).text());
      document.title = 'ready';
    }));
  </script>`,
  '/data': 'some data',
};

export const BASE_READY_CONDITION = "document.title === 'Base'";
export const READY_CONDITION = "document.title === 'ready'";
/**
 * An expression for the base page that unregisters its service workers. An attached debugger keeps an unregistered
 * worker running, so the worker may have to be stopped separately.
 */
export const UNREGISTER_WORKERS_SCRIPT =
  'navigator.serviceWorker.getRegistrations().then(all => Promise.all(all.map(one => one.unregister()))).then(() => {})';
/** An expression that runs in a page of a cell and returns what a script can observe about the page. */
export const STATE_SCRIPT = `JSON.stringify([document.title, location.search, opener !== null, innerWidth, innerHeight,
  screen.width, screen.height, name, history.length, navigator.userAgent, navigator.webdriver, navigator.language,
  navigator.onLine, document.visibilityState, document.referrer, devicePixelRatio])`;

export const opensByScript = ({ way }: Cell): boolean => way in WINDOW_ARGUMENTS;

/** An expression for the base page. It opens a single window, because Chromium allows one window per user gesture. */
export const windowOpenScript = (url: string, { way }: Cell): string =>
  `void window.open(${JSON.stringify(url)}, ${WINDOW_ARGUMENTS[way] ?? ''})`;

/** The URLs that are opened in each step. */
export function stepUrlsOf(site: string): ReadonlyArray<readonly string[]> {
  let urlCount = 0;
  return PAGE_COUNTS.map(count => Array.from({ length: count }, () => `${site}/cell?${urlCount++}`));
}

/** Returns the name that tracks use for the page, or other target, with this URL. */
export function trackNameOf(url: string): string {
  if (url.endsWith('/worker.js')) return 'worker';
  return url.includes('/cell?') ? `page ${url.split('?')[1]}` : 'base';
}

/** Whether the request is recorded. Requests for icons are excluded, because their times vary. */
export const isRecorded = (url: string): boolean => !url.endsWith('/favicon.ico');

export const pathOf = (url: string): string => url.slice(url.indexOf('/', 'http://'.length));

export class TrackRecorder {
  readonly #tracks = new Map<string, string[]>();

  add(track: string, ...seen: readonly unknown[]): void {
    const notes = this.#tracks.get(track) ?? [];
    this.#tracks.set(track, notes);
    notes.push(textOf(seen));
  }

  /** Adds an entry unless it equals the previous one. */
  addChange(track: string, ...seen: readonly unknown[]): void {
    if (this.#tracks.get(track)?.at(-1) !== textOf(seen)) this.add(track, ...seen);
  }

  get tracks(): Tracks {
    return this.#tracks;
  }
}

const textOf = (seen: readonly unknown[]): string =>
  seen.map(one => (typeof one === 'string' ? one : JSON.stringify(one))).join(' ');
