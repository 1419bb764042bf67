// Finds timers that a test cannot control. Work that is due at a certain time must wait for it with the clock
// (server/kit/clock.ts). A time limit for a socket, a program or a browser uses real time, and is listed here with its
// reason.
import { codeOnly, withoutComments } from './imports.ts';
import { isCode, isTest, lineOf, type SourceFile, type Violation } from './source-files.ts';

const TIMER = /(?<![\w.$])set(?:Timeout|Interval)\s*\(|\bAbortSignal\s*\.\s*timeout\s*\(/g;
/** Matches, for example, `import { setTimeout as timer } from 'node:timers/promises'`. */
const TIMER_IMPORT = /\bset(?:Timeout|Interval)\b[^;]*\bfrom\s*(['"])(?:node:)?timers(?:\/promises)?\1/g;
const CLOCK_FILE = 'server/kit/clock.ts';

/** Maps the path of a file to the purpose of its timers. A listed file without a timer is an error. */
const REAL_TIMERS: Readonly<Record<string, string>> = {
  'server/kit/wait.ts': 'how long a response from a process, a socket or a browser may take',
  'server/kit/worker-pool.ts': 'how long a job may run, and how long an idle thread is kept',
  'server/kit/loop-watch.ts': 'measures how late real timers are',
  'server/engines/browser/holds.ts': 'how long a client may take to learn of a page',
  'server/engines/driver/driver.ts':
    'how long a command in a browser may take, and how long an idle connection is kept',
  'server/engines/driver/driven-browser.ts': 'how long a page may take to show the effect of a command',
  'server/engines/driver/capture.ts': 'how long the whole capture of a page may take',
  'server/engines/egress/dial.ts': 'when the next address is tried in parallel with one that does not respond',
  'server/engines/store/announcer.ts': 'when a write to the database is tried again',
  'server/engines/store/listener.ts': 'when the connection to the database is checked',
  'server/engines/store/open-store.ts': 'when a connection to the database is tried again',
  'server/engines/store/embedded/postmaster.ts':
    'when it is checked whether a process that is not our child is still running',
  'server/engines/store/embedded/run-embedded.ts': 'when PostgreSQL is started again',
  'server/domain/live/front-end.ts': 'how long the files of DevTools may take to be read from a Chromium',
  'server/domain/sessions/warm-pool.ts': 'how long a Chromium may take to start',
  'server/entry/http/early-response.ts': 'how long the body of a refused request is read',
  'server/entry/http/server.ts': 'how long a request may take',
  'server/entry/http/graceful-close.ts': 'how long last requests and the end of the server may take',
  'server/entry/cdp/relay.ts': 'how long a client is given to close',
  'server/entry/cdp/upgrade.ts': 'how long a refused client is given to close',
  'server/entry/forward/peer-listener.ts': 'how long handshakes may take when the listener closes',
  'server/entry/forward/forwarder.ts': 'how long a connection to another host may take',
  'server/entry/live/viewer.ts': 'how long a viewer is given to close',
};

/** `exceptions`: the files that may have real timers, with the reasons. */
export function checkTimers(files: readonly SourceFile[], exceptions = REAL_TIMERS): Violation[] {
  const serverFiles = files.filter(({ path }) => path.startsWith('server/') && isCode(path) && !isTest(path));
  const timers = serverFiles.filter(({ path }) => path !== CLOCK_FILE).flatMap(timersIn);
  const pathsWithTimers = new Set(timers.map(({ path }) => path));
  return [
    ...timers.filter(({ path }) => exceptions[path] === undefined),
    ...Object.keys(exceptions)
      .filter(path => !pathsWithTimers.has(path))
      .map(path => ({
        path,
        what: 'tools/timers.ts names this file, which has no timer',
        remedy: 'remove the line from the table.',
      })),
  ];
}

function timersIn({ path, text }: SourceFile): Violation[] {
  const matches = [...codeOnly(text).matchAll(TIMER), ...withoutComments(text).matchAll(TIMER_IMPORT)];
  return matches.map(({ index }) => ({
    path,
    line: lineOf(text, index),
    what: 'a real timer',
    remedy:
      'wait with the clock (sleep, or callAt of server/kit/clock.ts), so that a test can move it; if it limits a socket, a program or a browser, add the reason to tools/timers.ts.',
  }));
}
