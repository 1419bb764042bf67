// What a client may say to the browser: refused and rewritten commands, each with its reason. Everything else passes as
// the same bytes. The jail, the egress proxy and Chromium's managed policies hold without this file; it is here to give
// clear answers, to keep files with their session, and to leave nothing to one layer alone.
import type { Browser, Command, JsonObject, Policy, Verdict } from '../../domain/sessions/machinery.ts';

/** Browser contexts that clients made and that stand at once in one session. */
const CONTEXTS_MAX = 50;
const UPLOADS = '/tmp/.uploads/';
const REFUSED_SCHEMES = ['file:', 'chrome:', 'chrome-untrusted:', 'devtools:', 'view-source:'];
const WEB_SCHEMES_IN_SCHEMES = /^(view-source|blob|filesystem):/;

const PASS: Verdict = { pass: true };

const REFUSED: Readonly<Record<string, string>> = {
  'Browser.crash': 'would end the session as crashed. Release the session instead',
  'Browser.crashGpuProcess': 'would harm the session. Release the session instead',
  'Browser.executeBrowserCommand': "opens the browser's own chrome: pages",
  'Browser.getBrowserCommandLine': 'tells of the host',
  'SystemInfo.getInfo': 'tells of the host',
  'SystemInfo.getFeatureState': 'tells of the host',
  'SystemInfo.getProcessInfo': 'tells of the host',
  'Target.sendMessageToTarget':
    'carries commands inside commands. Use flat sessions: Target.attachToTarget with flatten: true',
  'Target.exposeDevToolsProtocol': 'gives a page the whole browser',
  'Target.setRemoteLocations': 'connects the browser to another debugger',
  'Target.openDevTools': 'opens a window that nobody can see',
  'Tethering.bind': 'opens a port of the browser',
  'Tethering.unbind': 'closes a port of the browser',
  'PWA.install': 'may read a bundle from the host, and there is no desktop to install it on',
  'PWA.launchFilesInApp': 'hands files of the host to a page',
  'Extensions.loadUnpacked': 'reads a folder of the host. Upload the extension and name it when the session is created',
};

export interface PolicyParts {
  readonly browser: Browser;
  readonly keepAlive: boolean;
  /** The client said Browser.close on a session that ends with it, or on one that stays: then only the client goes. */
  readonly closeAsked: () => void;
}

export function clientPolicy(parts: PolicyParts): Policy {
  const { browser } = parts;
  const rules: Readonly<Record<string, (params: JsonObject) => Verdict | Promise<Verdict>>> = {
    'Browser.close': () => {
      parts.closeAsked();
      return { answer: {} };
    },
    'Browser.setDownloadBehavior': params => keptDownloads(params, browser.downloadFolder),
    'Page.setDownloadBehavior': params => keptDownloads(params, browser.downloadFolder),
    'DOM.setFileInputFiles': params => sessionFiles('DOM.setFileInputFiles', params, browser.downloadFolder),
    'Input.dispatchDragEvent': params => draggedFiles(params, browser.downloadFolder),
    'Page.navigate': params => openable(params, browser.downloadFolder),
    'Network.loadNetworkResource': params => openable(params, browser.downloadFolder),
    'Target.createTarget': params => newTarget(params, browser),
    'Target.attachToTarget': flatOnly,
    'Target.setAutoAttach': flatOnly,
    'Target.createBrowserContext': params => newContext(params, browser),
  };
  const watched = new Set([...Object.keys(REFUSED), ...Object.keys(rules)]);
  const judge = ({ method, params }: Command): Verdict | Promise<Verdict> => {
    const why = REFUSED[method];
    if (why) return { refuse: `${method} is refused: it ${why}.` };
    return rules[method]?.(params) ?? PASS;
  };
  return { watched, judge };
}

/** The client names a path of its own machine; the file belongs to the session, under a name that nothing collides with. */
function keptDownloads(params: JsonObject, folder: string): Verdict {
  if (params.behavior === 'deny') return PASS;
  return { rewrite: { ...params, behavior: 'allowAndName', downloadPath: folder } };
}

/** A page in a window of its own gets the session's size; in the same window it inherits it. */
function newTarget(params: JsonObject, browser: Browser): Verdict {
  const verdict = openable(params, browser.downloadFolder);
  const sized = params.width !== undefined || params.height !== undefined || params.windowState !== undefined;
  const ownWindow = params.newWindow === true || params.browserContextId !== undefined;
  if (verdict !== PASS || sized || !ownWindow) return verdict;
  return { rewrite: { ...params, ...browser.viewport } };
}

function sessionFiles(method: string, params: JsonObject, downloads: string): Verdict {
  if (params.files !== undefined && !Array.isArray(params.files)) return { refuse: `${method}: files must be a list.` };
  const files: readonly unknown[] = params.files ?? [];
  const foreign = files.find(file => typeof file !== 'string' || !isSessionFile(file, downloads));
  if (foreign === undefined) return PASS;
  return {
    refuse: `${method} is refused for ${JSON.stringify(foreign)}: only files under ${UPLOADS} (uploads) and ${downloads}/ (downloads) may be attached. Upload the file to the session first.`,
  };
}

/** Files that are dropped on a page are as readable for it as those of a file input. */
function draggedFiles({ data }: JsonObject, downloads: string): Verdict {
  return isObject(data) ? sessionFiles('Input.dispatchDragEvent', data, downloads) : PASS;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSessionFile = (path: string, downloads: string): boolean =>
  (path.startsWith(UPLOADS) || path.startsWith(`${downloads}/`)) &&
  !path.split('/').includes('..') &&
  !path.includes('\0');

function openable(params: JsonObject, downloads: string): Verdict {
  const url = typeof params.url === 'string' ? params.url : '';
  const refused = refusedScheme(url, downloads);
  if (!refused) return PASS;
  return {
    refuse: `Opening ${refused} pages is refused: they show the browser or its host, not the web. Use an http, https, data or about:blank address.`,
  };
}

/** Chromium trims and lower-cases like the URL standard; so does this, and looks inside view-source: and its kind. */
function refusedScheme(url: string, downloads: string): string | undefined {
  let rest = url;
  for (;;) {
    if (!URL.canParse(rest)) return looksLikeScheme(rest);
    const parsed = new URL(rest);
    if (parsed.protocol === 'file:' && isSessionFile(decodeURIComponentSafe(parsed.pathname), downloads))
      return undefined;
    if (REFUSED_SCHEMES.includes(parsed.protocol)) return parsed.protocol;
    if (!WEB_SCHEMES_IN_SCHEMES.test(parsed.protocol)) return undefined;
    rest = parsed.href.slice(parsed.protocol.length);
  }
}

const looksLikeScheme = (text: string): string | undefined =>
  REFUSED_SCHEMES.find(scheme => text.trim().toLowerCase().startsWith(scheme));

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '/..';
  }
}

function flatOnly(params: JsonObject): Verdict {
  if (params.flatten === true || params.autoAttach === false) return PASS;
  return {
    refuse: 'Sessions that are not flat are refused: they carry commands inside commands. Say flatten: true.',
  };
}

/** A context's own proxy would lead nowhere: the only way out is the session's. Files downloaded in it are kept too. */
async function newContext(params: JsonObject, browser: Browser): Promise<Verdict> {
  if (params.proxyServer !== undefined || params.proxyBypassList !== undefined)
    return {
      refuse:
        'Target.createBrowserContext is refused with a proxy of its own: the session’s network has one way out. Name proxies when the session is created.',
    };
  const standing = await browser.contextIds();
  if (standing.length >= CONTEXTS_MAX)
    return {
      refuse: `${CONTEXTS_MAX} browser contexts stand in this session already, which is the limit. Dispose of one.`,
    };
  return {
    pass: true,
    onAnswer: async answer => {
      const id = answer.result?.browserContextId;
      if (typeof id === 'string') await browser.equipContext(id);
      return answer;
    },
  };
}
