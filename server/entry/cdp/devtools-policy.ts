// The commands that DevTools may send to the page that it was opened on: commands that concern that page and that other
// clients may send too. All other commands, including unknown ones, are refused. DevTools never pauses new targets, so
// it cannot delay frames of the agent's page.
import type { Command, Policy, Verdict } from '../../domain/sessions/browser-host.ts';
import type { JsonObject } from '../../kit/json.ts';
import { clientPolicy, type PolicyParts } from './policy.ts';

/** All commands of these domains concern the page, or data that it shares with other pages in its browser context. */
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

/** Commands in PAGE_DOMAINS that concern the whole browser. */
const BROWSER_WIDE_COMMANDS: ReadonlySet<string> = new Set([
  'Emulation.addScreen',
  'Emulation.removeScreen',
  'Emulation.setPrimaryScreen',
  'Emulation.updateScreen',
]);

/** Commands that the DevTools front end always sends when it starts. They can be answered without being executed. */
const NO_OP_COMMANDS: ReadonlySet<string> = new Set([
  'Runtime.runIfWaitingForDebugger',
  'Target.setDiscoverTargets',
  'Target.setRemoteLocations',
]);

/** Target types of frames and workers of the page. A popup is a page of its own. */
const PAGE_TARGET_FILTER: readonly JsonObject[] = [
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

const EMULATE_BY_RULE = 'Network.emulateNetworkConditionsByRule';
/** Overrides outside the Emulation domain. Clearing an override clears it for all clients. */
const NETWORK_OVERRIDES: ReadonlySet<string> = new Set([
  'Network.setBlockedURLs',
  'Network.setCacheDisabled',
  'Network.setBypassServiceWorker',
  'Network.emulateNetworkConditions',
  EMULATE_BY_RULE,
  'Network.overrideNetworkState',
  'Page.setBypassCSP',
  'Page.setAdBlockingEnabled',
]);
const WORKSPACE_PATH = '/.well-known/appspecific/com.chrome.devtools.json';

const PASS: Verdict = { pass: true };

export interface DevtoolsPolicyParts extends PolicyParts {
  /** Target id of the page. */
  readonly page: string;
}

export function devtoolsPolicy(parts: DevtoolsPolicyParts): Policy {
  const basePolicy = clientPolicy(parts);
  const ownOverrides = new Set<string>();
  const decide = (command: Command): Verdict | Promise<Verdict> => {
    const { method, params } = command;
    if (NO_OP_COMMANDS.has(method)) return { respondWith: {} };
    if (method === 'Target.setAutoAttach') return attachToPageTargets(params);
    if (method === 'Target.detachFromTarget') return PASS; // the command can name only channels of its own client
    if (isWorkspaceLookup(command))
      return { refuse: 'DevTools cannot save changes here: there is no workspace folder.' };
    if (isAboutPage(params, parts.page) && (method === 'Target.getTargetInfo' || isPageMethod(method)))
      return isOverride(method) ? judgeOverride(command, ownOverrides) : basePolicy.judge(command);
    return {
      refuse: `${method} is refused here: DevTools was opened for one page, and the command does not concern that page.`,
    };
  };
  return { ...basePolicy, isWatched: () => true, judge: decide };
}

/**
 * Whether the command is a lookup of a workspace folder. The front end requests a file from every site to find out
 * whether the site names such a folder on this machine.
 */
const isWorkspaceLookup = ({ method, params }: Command): boolean =>
  method === 'Network.loadNetworkResource' && typeof params.url === 'string' && params.url.endsWith(WORKSPACE_PATH);

const isOverride = (method: string): boolean =>
  /^Emulation\.(?:set|clear)/.test(method) || NETWORK_OVERRIDES.has(method);

const isPageMethod = (method: string): boolean =>
  PAGE_DOMAINS.has(method.split('.', 1)[0] ?? '') && !BROWSER_WIDE_COMMANDS.has(method);

const isAboutPage = ({ targetId, browserContextId }: JsonObject, page: string): boolean =>
  browserContextId === undefined && (targetId === undefined || targetId === page);

function attachToPageTargets({ autoAttach }: JsonObject): Verdict {
  const isEnabled = autoAttach === true;
  const filter = isEnabled ? { filter: PAGE_TARGET_FILTER } : {};
  return { rewrite: { autoAttach: isEnabled, waitForDebuggerOnStart: false, flatten: true, ...filter } };
}

/**
 * When it starts, the front end clears all overrides, including those of the agent. Only overrides that DevTools itself
 * has set are actually cleared.
 */
function judgeOverride({ method, params }: Command, overriddenMethods: Set<string>): Verdict {
  const name = method.replace('.clear', '.set');
  if (name === method && !isNeutral(method, params)) {
    overriddenMethods.add(name);
    return PASS;
  }
  return overriddenMethods.has(name) ? { restoreOthers: true } : { respondWith: CLEARING_RESPONSES[method] ?? {} };
}

/** Responses to clearing commands whose result is not `{}`. */
const CLEARING_RESPONSES: Readonly<Record<string, JsonObject>> = { [EMULATE_BY_RULE]: { ruleIds: [] } };

const NEUTRAL_VALUES: ReadonlySet<unknown> = new Set([undefined, null, false, '', 'none', 'default', 0, -1]);
/** Commands for which an empty value is also an override. */
const NEVER_NEUTRAL_COMMANDS: ReadonlySet<string> = new Set([
  'Emulation.setGeolocationOverride',
  'Emulation.setIdleOverride',
]);

/** Whether the command clears an override. */
const isNeutral = (method: string, params: JsonObject): boolean =>
  !NEVER_NEUTRAL_COMMANDS.has(method) && isEmpty(params);

function isEmpty(params: JsonObject): boolean {
  return Object.entries(params).every(([name, value]) => {
    if (Array.isArray(value)) return value.every(one => typeof one === 'object' && one !== null && isEmpty(one));
    return (
      name === 'name' || NEUTRAL_VALUES.has(value) || (name === 'rate' && value === 1) || name === 'maxTouchPoints'
    );
  });
}
