// Finds the places where data from pages, clients, browsers and other servers enters the server, and requires the guard
// (server/kit/guard.ts) there: an error thrown by such a listener would otherwise end the process, with all sessions.
// Entrances without a guard are listed here with the reason.
import { codeOnly, withoutComments } from './imports.ts';
import { isCode, isTest, lineOf, type SourceFile, type Violation } from './source-files.ts';

/** Events that deliver bytes from outside, or values made from them. */
const EVENTS = [
  'message',
  'data',
  'readable',
  'connection',
  'secureConnection',
  'request',
  'checkContinue',
  'checkExpectation',
  'connect',
  'upgrade',
  'response',
  'information',
  'clientError',
  'tlsClientError',
];
const LISTENER_CALL = new RegExp(
  `\\.(?:on|once|addListener|prependListener|addEventListener)\\(\\s*(['"\`])(${EVENTS.join('|')})\\1\\s*,\\s*([\\w.#$]*)`,
  'g',
);
const READ_CALLBACK = /\bonread\s*:/g;
const PARSE_CALL = /\bJSON\s*\.\s*parse\b/g;
/**
 * String() throws for an object that cannot be converted, and otherwise returns text that a page, a client or a browser
 * controls.
 */
const STRING_CALL = /(?<![\w.$])String\(/g;
const NO_STRING_CALL_PATHS = /^server\/(?:engines\/browser|domain\/logs|domain\/live|entry\/cdp|entry\/live)\//;

const OWN_BYTES_REASON = 'reads what this installation wrote, or what it was shipped with';

/**
 * Entrances without the guard, with the reason: by file, then by event, `onread` or `JSON.parse`. An entry that no
 * longer applies is an error.
 */
const UNGUARDED_BY_DESIGN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'server/kit/foreign.ts': { 'JSON.parse': 'the implementation of parseJson, which catches the error' },
  'server/kit/worker-pool.ts': { message: 'results from our own worker threads' },
  'server/kit/worker-thread.ts': {
    message: 'jobs from the pool; an error that a job throws is sent back as its result',
  },
  'server/wiring/storage-state-job.ts': {
    'JSON.parse': 'runs in a worker thread, which sends back an error that the job throws',
  },
  'server/engines/browser/pipe.ts': { onread: 'guards each message, not each read' },
  'server/engines/driver/driver.ts': { message: 'results from our own threads, which have shortened the fields' },
  'server/entry/http/mcp.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/engines/driver/driven-browser.ts': {
    request: 'runs in a separate thread, on a request that Playwright has parsed',
  },
  'server/engines/driver/driver-thread.ts': {
    message: 'commands from the main thread; an error is sent back as the result',
  },
  'server/engines/egress/tunnel.ts': { onread: 'passes bytes on without reading them' },
  'server/engines/egress/request-socket.ts': { onread: 'passes bytes on without reading them' },
  'server/engines/egress/forwarder.ts': { data: 'passes bytes on without reading them' },
  'server/engines/egress/dial.ts': { connect: 'delivers no bytes: the connection is established' },
  'server/engines/egress/self-route.ts': { tlsClientError: 'closes the connection without reading from it' },
  'server/engines/slots/egress-listener.ts': {
    message: 'the helper that opens the listener is ours',
    connection: 'closes the connection without reading from it',
  },
  'server/engines/slots/probe.ts': {
    connection: 'the browser of the probe shows our own page',
    data: 'responds without reading the bytes',
  },
  'server/engines/slots/session-folder.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/engines/slots/probe-cache.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/engines/store/run-program.ts': { data: 'programs of PostgreSQL, which are ours' },
  'server/engines/store/database.ts': { connect: 'a connection to our own database' },
  'server/engines/store/embedded/link-libraries.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/engines/profiles/staging.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/engines/profiles/profiles.ts': { 'JSON.parse': 'sealed by this installation; a caller awaits it' },
  'server/entry/http/server.ts': {
    request: "Fastify's own, which answers what a handler throws",
    checkExpectation: "Fastify's own, as for every other request",
  },
  'server/entry/http/graceful-close.ts': {
    connection: 'keeps the socket without reading from it',
    request: 'counts responses without looking at the request',
  },
  'server/kit/accept-backlog.ts': { connection: 'counts connections without reading from them' },
  'server/entry/forward/peer-listener.ts': {
    connection: 'keeps the socket without reading from it',
    secureConnection: 'passes the socket to the HTTP server without reading from it',
  },
  'server/entry/cdp/relay.ts': { data: 'counts bytes without reading them' },
  'server/entry/http/json-body.ts': { 'JSON.parse': 'reports what is wrong with a body; Fastify awaits it' },
  'server/entry/http/repeats.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/domain/audit/verify.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/domain/invocations/browser-operations.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/domain/network/network.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/server-record.ts': { 'JSON.parse': OWN_BYTES_REASON },
  'server/wiring/proxy-pools.ts': { 'JSON.parse': "the operator's file, read before the start" },
  'server/version.ts': { 'JSON.parse': OWN_BYTES_REASON },
};

interface Entrance {
  readonly path: string;
  readonly line: number;
  readonly name: string;
}

/** `exceptions`: the entrances that may be without a guard, with the reasons. */
export function checkEntrances(files: readonly SourceFile[], exceptions = UNGUARDED_BY_DESIGN): Violation[] {
  const serverFiles = files.filter(({ path }) => path.startsWith('server/') && isCode(path) && !isTest(path));
  const unguardedEntrances = serverFiles.flatMap(unguardedEntrancesIn);
  const entranceKeys = new Set(unguardedEntrances.map(({ path, name }) => `${path} ${name}`));
  const staleEntries = Object.entries(exceptions).flatMap(([path, reasons]) =>
    Object.keys(reasons).flatMap(name => (entranceKeys.has(`${path} ${name}`) ? [] : [{ path, name }])),
  );
  return [
    ...unguardedEntrances.filter(({ path, name }) => exceptions[path]?.[name] === undefined).map(violation),
    ...serverFiles.flatMap(conversionsIn),
    ...staleEntries.map(({ path, name }) => ({
      path,
      what: `tools/entrances.ts lists ${name}, but this file does not have it without a guard`,
      remedy: 'remove the line from the table.',
    })),
  ];
}

const violation = ({ path, line, name }: Entrance): Violation => ({
  path,
  line,
  what: `bytes from outside enter here without a guard: ${name}`,
  remedy:
    name === 'JSON.parse'
      ? 'use parseJson of server/kit/foreign.ts and check the types of the values; if the bytes are ours, add a reason to tools/entrances.ts.'
      : 'wrap the listener in guardListener(…) of server/kit/guard.ts, and pass the function that ends the connection if the listener throws; if the listener cannot throw, add the reason to tools/entrances.ts.',
});

function unguardedEntrancesIn({ path, text }: SourceFile): Entrance[] {
  const code = codeOnly(text);
  const codeWithStrings = withoutComments(text);
  const entranceAt = (index: number, name: string): Entrance => ({ path, line: lineOf(text, index), name });
  return [
    ...[...codeWithStrings.matchAll(LISTENER_CALL)]
      .filter(([, , , listener = '']) => listener !== 'guardListener' && !isMadeByGuard(code, listener))
      .map(match => entranceAt(match.index, match[2] ?? '')),
    ...[...code.matchAll(READ_CALLBACK)].map(match => entranceAt(match.index, 'onread')),
    ...[...code.matchAll(PARSE_CALL)].map(match => entranceAt(match.index, 'JSON.parse')),
  ];
}

/** Whether the listener is declared as `const hear = guardListener(…)`, or as a class member in the same way. */
function isMadeByGuard(code: string, listener: string): boolean {
  const name = listener.replace(/^this\./, '').replaceAll('$', '\\$');
  return /^#?[\w$\\]+$/.test(name) && new RegExp(`(?<![\\w$])${name} = guardListener\\(`).test(code);
}

function conversionsIn({ path, text }: SourceFile): Violation[] {
  if (!NO_STRING_CALL_PATHS.test(path)) return [];
  return [...codeOnly(text).matchAll(STRING_CALL)].map(match => ({
    path,
    line: lineOf(text, match.index),
    what: 'a value is converted to text: String(…)',
    remedy:
      'check with typeof that the value is a string, and limit its length (boundedText of server/kit/foreign.ts); write a number as `${n}`.',
  }));
}
