// The CDP commands of clients that are refused or rewritten, with reasons. All others are forwarded unchanged. The
// jail, the egress proxy and Chromium's managed policies protect the host even without this file. This file gives clear
// errors, keeps files in their session, and adds a second layer of protection.

import type { Lease } from '../../domain/handoffs/lease.ts';
import type { Browser, Command, Policy, Verdict } from '../../domain/sessions/browser-host.ts';
import { boundedText } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import {
  CONTINUE_COMMANDS,
  hasPassedGuard,
  mayWait,
  mustWait,
  TITLE_COMMANDS,
  unchangedRequestParams,
} from './held-commands.ts';
import { isDialogEvent, MaskedDialogs } from './masked-dialogs.ts';
import { shownEvent, withoutTitle } from './masked-events.ts';
import { MaskedRequests } from './masked-requests.ts';
import { TraceStreams } from './trace-streams.ts';

const UPLOADS_PREFIX = '/tmp/.uploads/';
const REFUSED_SCHEMES = ['file:', 'chrome:', 'chrome-untrusted:', 'devtools:', 'view-source:'];
/** URLs with these schemes contain another URL. On the web, at most one level of nesting occurs. */
const WRAPPING_SCHEMES = ['blob:', 'filesystem:'];
const SCHEME_DEPTH_MAX = 4;
const SCHEME_PATTERN = /^[a-z][a-z0-9+.-]*:/i;
/** The same limit as in Chromium, which does not open longer URLs. */
const URL_CHARS_MAX = 2 * 1024 ** 2;
/** The maximum number of characters of a value that an error message quotes. */
const QUOTED_CHARS_MAX = 200;

const PASS: Verdict = { pass: true };

const REFUSED_METHODS: Readonly<Record<string, string>> = {
  'Browser.crash': 'would end the session as crashed. Release the session instead',
  'Browser.crashGpuProcess': 'would harm the session. Release the session instead',
  'Browser.executeBrowserCommand': "opens the browser's own chrome: pages",
  'Browser.getBrowserCommandLine': 'reveals information about the host',
  'SystemInfo.getInfo': 'reveals information about the host',
  'SystemInfo.getFeatureState': 'reveals information about the host',
  'SystemInfo.getProcessInfo': 'reveals information about the host',
  'Target.sendMessageToTarget':
    'carries commands inside commands. Use flat sessions: Target.attachToTarget with flatten: true',
  'Target.exposeDevToolsProtocol': 'gives a page control of the whole browser',
  'Target.setRemoteLocations': 'connects the browser to another debugger',
  'Target.openDevTools': 'opens a window that nobody can see',
  'Tethering.bind': 'opens a port of the browser',
  'Tethering.unbind': 'closes a port of the browser',
  'PWA.install': 'may read a bundle from the host, and there is no desktop to install it on',
  'PWA.launchFilesInApp': 'gives a page access to files of the host',
};

/** The id in these commands must be the id of an extension of the session. */
const EXTENSION_ID_COMMANDS = [
  'Extensions.uninstall',
  'Extensions.triggerAction',
  'Extensions.getStorageItems',
  'Extensions.setStorageItems',
  'Extensions.removeStorageItems',
  'Extensions.clearStorageItems',
];

export interface PolicyParts {
  readonly browser: Browser;
  readonly keepAlive: boolean;
  /** Called on `Browser.close`. Ends the session or, with `keepAlive`, only disconnects the client. */
  readonly onCloseRequest: () => void;
  /** While a viewer has control, input from the agent is queued or refused. */
  readonly lease?: Pick<Lease, 'control' | 'judgeInput'> | undefined;
  /** Requests a hand-off, for the command `Berth.handoff`. */
  readonly requestHandoff?: (params: JsonObject) => Promise<JsonObject>;
}

export function clientPolicy(parts: PolicyParts): Policy {
  const { browser, requestHandoff } = parts;
  const traces = TraceStreams.of(browser);
  const rules: Readonly<Record<string, (params: JsonObject, isForBrowser: boolean) => Verdict | Promise<Verdict>>> = {
    ...(browser.isGuardingNavigations ? { 'Fetch.enable': refuseBrowserLevelFetch } : {}),
    'Browser.close': () => {
      parts.onCloseRequest();
      return { respondWith: {} };
    },
    'Browser.setDownloadBehavior': params => saveInSessionFolder(params, browser.downloadFolder),
    'Page.setDownloadBehavior': params => saveInSessionFolder(params, browser.downloadFolder),
    'DOM.setFileInputFiles': params => judgeFiles('DOM.setFileInputFiles', params, browser),
    'Input.dispatchDragEvent': params => judgeDraggedFiles(params, browser),
    'Input.setIgnoreInputEvents': refuseIgnoringInput,
    'Page.navigate': params => judgeNavigation(params, browser.downloadFolder),
    'Network.loadNetworkResource': params => judgeNavigation(params, browser.downloadFolder),
    'Target.createTarget': params => judgeNewTarget(params, browser),
    'Target.attachToTarget': requireFlatSession,
    'Target.setAutoAttach': params => (params.autoAttach === false ? PASS : requireFlatSession(params)),
    'Target.detachFromTarget': () => restoreDownloadBehavior(browser),
    'Target.createBrowserContext': params => judgeNewContext(params, browser),
    'Tracing.start': params => traces.start(params),
    'IO.read': params => traces.read(params),
    'IO.close': params => traces.close(params),
    'Extensions.loadUnpacked': params => requireOwnExtension(params, browser),
    ...(requestHandoff ? { 'Berth.handoff': async params => ({ respondWith: await requestHandoff(params) }) } : {}),
    ...Object.fromEntries(
      EXTENSION_ID_COMMANDS.map(method => [method, params => requireLoadedExtension(method, params, browser)]),
    ),
  };
  const watchedMethods = new Set([...Object.keys(REFUSED_METHODS), ...Object.keys(rules)]);
  const maskedRequests = new MaskedRequests();
  const judgeByRules = ({ method, params, isForBrowser }: Command): Verdict | Promise<Verdict> => {
    const refusalReason = REFUSED_METHODS[method];
    if (refusalReason) return { refuse: `${method} is refused: it ${refusalReason}.` };
    const bodyRefusal = maskedRequests.mayBeReadBy(method) && maskedRequests.refusalFor(params.requestId);
    if (bodyRefusal) return { refuse: `${method} is refused: ${bodyRefusal}.` };
    return rules[method]?.(params, isForBrowser) ?? PASS;
  };
  const { lease } = parts;
  const isWatched = (method: string): boolean =>
    maskedRequests.mayBeReadBy(method) || (lease?.control !== undefined && mayWait(method, lease.control));
  const decide = (command: Command): Verdict | Promise<Verdict> => {
    const control = lease?.control;
    if (!control) return judgeByRules(command);
    if (mustWait(command, control))
      return judgeAfterControl(lease.judgeInput(command.method), () => judgeByRules(command));
    if (hasPassedGuard(command, control)) return { rewrite: unchangedRequestParams(command.params) };
    return (control.isMasked ? judgeMasked(command) : undefined) ?? judgeByRules(command);
  };
  const dialogs = new MaskedDialogs();
  const filterEvent = (event: Buffer): Buffer | undefined => {
    if (!lease?.control?.isMasked) return event;
    maskedRequests.observe(event);
    return isDialogEvent(event) ? dialogs.visiblePart(event) : shownEvent(event);
  };
  const takeWithheld = (): readonly Buffer[] => dialogs.take();
  return {
    watchedMethods,
    isWatched,
    judge: decide,
    onEvent: message => traces.observe(message),
    filterEvent,
    takeWithheld,
  };
}

/** Returns the verdict on a command that passes in a masked hand-off only if the command or its response is changed. */
function judgeMasked({ method, params }: Command): Verdict | undefined {
  if (CONTINUE_COMMANDS.has(method)) return { rewrite: unchangedRequestParams(params) };
  if (!TITLE_COMMANDS.has(method)) return undefined;
  return {
    pass: true,
    onResponse: response => (response.result ? { ...response, result: withoutTitle(response.result) } : response),
  };
}

function judgeAfterControl(
  input: ReturnType<Lease['judgeInput']>,
  decide: () => Verdict | Promise<Verdict>,
): Verdict | Promise<Verdict> {
  if (input === 'pass') return decide();
  if ('refuse' in input) return input;
  return { defer: input.wait.then(inputAfterWait => (inputAfterWait === 'pass' ? decide() : inputAfterWait)) };
}

/** A request that a client continues at browser level bypasses the navigation guard and may have a changed URL. */
const refuseBrowserLevelFetch = (_params: JsonObject, isForBrowser: boolean): Verdict =>
  isForBrowser
    ? {
        refuse:
          'Fetch.enable on the browser itself is refused in a session with allowedDomains, or a networkPolicy for documents. Enable it on the pages, as page.route does.',
      }
    : PASS;

/**
 * The path that the client names is on the client's machine. The file is saved in the session folder instead, under a
 * unique name.
 */
function saveInSessionFolder(params: JsonObject, folder: string): Verdict {
  if (params.behavior === 'deny') return PASS;
  return { rewrite: { ...params, behavior: 'allowAndName', downloadPath: folder } };
}

/**
 * Detaching a channel resets the download behavior that was set on it, so the server's download behavior must be set
 * again.
 */
const restoreDownloadBehavior = (browser: Browser): Verdict => ({
  pass: true,
  onResponse: async response => {
    await browser.captureDownloads().catch(() => {}); // the browser is ending
    return response;
  },
});

/** Without a jail, uploads are not mounted at UPLOADS_PREFIX, so the browser needs their real paths. */
function withRealPaths(params: JsonObject, files: readonly string[], uploadFolderPath: string): Verdict {
  if (`${uploadFolderPath}/` === UPLOADS_PREFIX) return PASS;
  const realPaths = files.map(file => file.replace(UPLOADS_PREFIX, () => `${uploadFolderPath}/`));
  return { rewrite: { ...params, files: realPaths } };
}

/**
 * Chromium opens an empty page for a javascript: URL and does not run the script. With the managed policies, which
 * block some schemes, that page never responds, so about:blank is opened instead.
 */
function judgeNewTarget(params: JsonObject, { isPageLimitReached, pagesMax, downloadFolder }: Browser): Verdict {
  if (isPageLimitReached)
    return { refuse: `The session already has ${pagesMax} pages, which is the limit. Close one first.` };
  const isScript = typeof params.url === 'string' && URL.parse(params.url)?.protocol === 'javascript:';
  return isScript ? { rewrite: { ...params, url: 'about:blank' } } : judgeNavigation(params, downloadFolder);
}

function judgeFiles(method: string, params: JsonObject, browser: Browser): Verdict {
  const { downloadFolder: downloads } = browser;
  if (params.files !== undefined && !Array.isArray(params.files))
    return { refuse: `${method} is refused: files must be a list.` };
  const files: readonly unknown[] = params.files ?? [];
  const isOwn = (file: unknown): file is string => typeof file === 'string' && isSessionFile(file, downloads);
  if (files.every(isOwn)) return withRealPaths(params, files, browser.uploadFolder);
  const foreignFile = files.find(file => !isOwn(file));
  return {
    refuse: `${method} is refused for ${quote(foreignFile)}: only files under ${UPLOADS_PREFIX} (uploads) and ${downloads}/ (downloads) may be attached. Upload the file to the session first.`,
  };
}

/** A page can read files that are dropped on it, just as it can read the files of a file input. */
function judgeDraggedFiles(params: JsonObject, browser: Browser): Verdict {
  const verdict = isObject(params.data) ? judgeFiles('Input.dispatchDragEvent', params.data, browser) : PASS;
  return 'rewrite' in verdict ? { rewrite: { ...params, data: verdict.rewrite } } : verdict;
}

const isSessionFile = (path: string, downloads: string): boolean =>
  (path.startsWith(UPLOADS_PREFIX) || path.startsWith(`${downloads}/`)) &&
  !path.split('/').includes('..') &&
  !path.includes('\0');

function judgeNavigation(params: JsonObject, downloads: string): Verdict {
  const url = typeof params.url === 'string' ? params.url : '';
  if (url.length > URL_CHARS_MAX)
    return { refuse: `This address has ${url.length} characters; Chromium accepts at most ${URL_CHARS_MAX}.` };
  const blockedScheme = refusedScheme(url, downloads);
  if (!blockedScheme) return PASS;
  return {
    refuse: `Opening ${blockedScheme} pages is refused: they show the browser or its host, not the web. Use an http, https, data or about:blank address.`,
  };
}

/**
 * Returns the refused scheme of a URL, or undefined. Normalizes the URL as the URL standard and Chromium do, and also
 * checks the URL within blob: and filesystem:.
 */
function refusedScheme(url: string, downloads: string): string | undefined {
  let remainingUrl = url.replace(/[\t\n\r]+/g, '');
  for (let depth = 0; depth < SCHEME_DEPTH_MAX; depth++) {
    remainingUrl = remainingUrl.replace(/^[\0- ]+/, '');
    const scheme = SCHEME_PATTERN.exec(remainingUrl)?.[0];
    if (scheme === undefined) return undefined;
    const protocol = scheme.toLowerCase();
    if (protocol === 'file:' && isOwnFile(remainingUrl, downloads)) return undefined;
    if (REFUSED_SCHEMES.includes(protocol)) return protocol;
    if (!WRAPPING_SCHEMES.includes(protocol)) return undefined;
    remainingUrl = remainingUrl.slice(scheme.length);
  }
  return 'nested blob: and filesystem:';
}

function isOwnFile(url: string, downloads: string): boolean {
  const path = URL.parse(url)?.pathname;
  return path !== undefined && isSessionFile(decodeURIComponentSafe(path), downloads);
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '/..';
  }
}

/** A value as part of an error message. */
const quote = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(boundedText(value, QUOTED_CHARS_MAX)) : 'a value that is not a string';

/** Ignoring input would also affect a viewer with control. */
const refuseIgnoringInput = (params: JsonObject): Verdict =>
  params.ignore === false
    ? PASS
    : { refuse: 'Input.setIgnoreInputEvents is refused: a person who takes control could not use the page.' };

function requireFlatSession(params: JsonObject): Verdict {
  if (params.flatten === true) return PASS;
  return {
    refuse: 'CDP sessions that are not flat are refused: they carry commands inside commands. Pass flatten: true.',
  };
}

/** A proxy for a browser context would not work, because traffic can leave only through the session's proxy. */
async function judgeNewContext(params: JsonObject, browser: Browser): Promise<Verdict> {
  if (params.proxyServer !== undefined || params.proxyBypassList !== undefined)
    return {
      refuse:
        'Target.createBrowserContext is refused with a proxy: all traffic of the session leaves through its egress proxy. Set proxies when the session is created.',
    };
  const existingIds = await browser.contextIds();
  if (existingIds.length >= browser.contextsMax)
    return {
      refuse: `The session already has ${browser.contextsMax} browser contexts, which is the limit. Dispose of one first.`,
    };
  return {
    pass: true,
    onResponse: async response => {
      const id = response.result?.browserContextId;
      if (typeof id === 'string') await browser.prepareContext(id);
      return response;
    },
  };
}

/**
 * Accepts only folders of the session's own extensions. Any other folder was created by someone else, or is outside the
 * box.
 */
function requireOwnExtension(params: JsonObject, browser: Browser): Verdict {
  const folder = typeof params.path === 'string' ? browser.extensions.folderOf(params.path) : undefined;
  if (folder !== undefined) return { rewrite: { ...params, path: folder } };
  return {
    refuse:
      'Extensions.loadUnpacked is refused for this path: only extensions that the session was created with can be loaded again, by their id or their folder. Upload the extension and name it when the session is created.',
  };
}

async function requireLoadedExtension(method: string, params: JsonObject, browser: Browser): Promise<Verdict> {
  const ownIds = await browser.extensions.loadedIds();
  if (ownIds.some(id => id === params.id)) return PASS;
  return { refuse: `${method} is refused: ${quote(params.id)} is not an extension of this session.` };
}
