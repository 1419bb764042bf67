// What DevTools may say to the one page that it was opened on. Only what is about a page passes, and of that only what a
// client may say too; whatever would lead to other pages, to the browser or to the host is refused, known to us or not.
// DevTools holds no target and lets none go, so that it never stands between the agent and its own new frames.

import type { Command, Policy, Verdict } from '../../domain/sessions/machinery.ts';
import type { JsonObject } from '../../kit/json.ts';
import { clientPolicy, type PolicyParts } from './policy.ts';

/** All of their commands are about the page, or about what the page shares with others of its browser context. */
const PAGE_DOMAINS: ReadonlySet<string> = new Set([
  'Accessibility',
  'Animation',
  'Audits',
  'Autofill',
  'BackgroundService',
  'CacheStorage',
  'Console',
  'CSS',
  'Debugger',
  'DeviceOrientation',
  'DOM',
  'DOMDebugger',
  'DOMSnapshot',
  'DOMStorage',
  'Emulation',
  'EventBreakpoints',
  'Fetch',
  'FileSystem',
  'HeapProfiler',
  'IndexedDB',
  'Input',
  'Inspector',
  'IO',
  'LayerTree',
  'Log',
  'Media',
  'Network',
  'Overlay',
  'Page',
  'Performance',
  'PerformanceTimeline',
  'Preload',
  'Profiler',
  'Runtime',
  'Schema',
  'Security',
  'ServiceWorker',
  'Storage',
  'WebAudio',
  'WebAuthn',
]);

/** The screens are those of the whole browser. */
const OF_THE_BROWSER: ReadonlySet<string> = new Set([
  'Emulation.addScreen',
  'Emulation.removeScreen',
  'Emulation.setPrimaryScreen',
  'Emulation.updateScreen',
]);

/** What the front end always says at its start; it goes on as well where nothing comes of it. */
const NOTHING_COMES_OF_IT: ReadonlySet<string> = new Set([
  'Runtime.runIfWaitingForDebugger',
  'Target.setDiscoverTargets',
  'Target.setRemoteLocations',
]);

/** Frames and workers of the page. A popup is a page of its own. */
const PARTS_OF_A_PAGE: readonly JsonObject[] = [
  ...[
    'iframe',
    'worker',
    'service_worker',
    'shared_worker',
    'worklet',
    'shared_storage_worklet',
    'auction_worklet',
  ].map(type => ({ type })),
  { exclude: true },
];

const BY_RULE = 'Network.emulateNetworkConditionsByRule';
/** Beside those of Emulation: what one client sets, another one's clearing of it takes away. */
const NETWORK_OVERRIDES: ReadonlySet<string> = new Set([
  'Network.setBlockedURLs',
  'Network.setCacheDisabled',
  'Network.setBypassServiceWorker',
  'Network.emulateNetworkConditions',
  BY_RULE,
  'Network.overrideNetworkState',
  'Page.setBypassCSP',
  'Page.setAdBlockingEnabled',
]);
const WORKSPACE_FILE = '/.well-known/appspecific/com.chrome.devtools.json';

const PASS: Verdict = { pass: true };

export interface DevtoolsPolicyParts extends PolicyParts {
  /** The CDP target id. */
  readonly page: string;
}

export function devtoolsPolicy(parts: DevtoolsPolicyParts): Policy {
  const client = clientPolicy(parts);
  const overridden = new Set<string>();
  const judge = (command: Command): Verdict | Promise<Verdict> => {
    const { method, params } = command;
    if (NOTHING_COMES_OF_IT.has(method)) return { answer: {} };
    if (method === 'Target.setAutoAttach') return withParts(params);
    if (method === 'Target.detachFromTarget') return PASS; // it knows none but its own
    if (isSearch(command)) return { refuse: 'DevTools cannot save changes here: there is no workspace folder.' };
    if (isAboutPage(params, parts.page) && (method === 'Target.getTargetInfo' || isOfPage(method)))
      return overrides(method) ? override(command, overridden) : client.judge(command);
    return { refuse: `${method} is refused here: DevTools was opened on one page, and this is not about that page.` };
  };
  return { watched: client.watched, alsoWatched: () => true, judge };
}

/** The front end would ask every site where its sources stand on this machine. */
const isSearch = ({ method, params }: Command): boolean =>
  method === 'Network.loadNetworkResource' && typeof params.url === 'string' && params.url.endsWith(WORKSPACE_FILE);

const overrides = (method: string): boolean =>
  /^Emulation\.(?:set|clear)/.test(method) || NETWORK_OVERRIDES.has(method);

const isOfPage = (method: string): boolean =>
  PAGE_DOMAINS.has(method.split('.', 1)[0] ?? '') && !OF_THE_BROWSER.has(method);

const isAboutPage = ({ targetId, browserContextId }: JsonObject, page: string): boolean =>
  browserContextId === undefined && (targetId === undefined || targetId === page);

function withParts({ autoAttach }: JsonObject): Verdict {
  const wanted = autoAttach === true;
  const filter = wanted ? { filter: PARTS_OF_A_PAGE } : {};
  return { rewrite: { autoAttach: wanted, waitForDebuggerOnStart: false, flatten: true, ...filter } };
}

/** The front end clears every override when it comes, which would clear the agent's: only what it has set is its to clear. */
function override({ method, params }: Command, overridden: Set<string>): Verdict {
  const name = method.replace('.clear', '.set');
  if (name === method && !isNeutral(method, params)) {
    overridden.add(name);
    return PASS;
  }
  return overridden.has(name) ? { yield: true } : { answer: CLEARED[method] ?? {} };
}

/** What Chromium would answer, where that is more than nothing. */
const CLEARED: Readonly<Record<string, JsonObject>> = { [BY_RULE]: { ruleIds: [] } };

const NEUTRAL: ReadonlySet<unknown> = new Set([undefined, null, false, '', 'none', 'default', 0, -1]);
/** Here nothing, or no, is something to pretend too. */
const NEVER_NEUTRAL: ReadonlySet<string> = new Set(['Emulation.setGeolocationOverride', 'Emulation.setIdleOverride']);

/** Nothing is pretended any more. */
const isNeutral = (method: string, params: JsonObject): boolean => !NEVER_NEUTRAL.has(method) && saysNothing(params);

function saysNothing(params: JsonObject): boolean {
  return Object.entries(params).every(([name, value]) => {
    if (Array.isArray(value)) return value.every(one => typeof one === 'object' && one !== null && saysNothing(one));
    return name === 'name' || NEUTRAL.has(value) || (name === 'rate' && value === 1) || name === 'maxTouchPoints';
  });
}
