// Determines which commands of the agent wait while a person has control: those that act on pages and, in a masked
// hand-off, all commands that could read them.
import type { Control } from '../../domain/handoffs/control.ts';
import type { Command } from '../../domain/sessions/browser-host.ts';
import type { JsonObject } from '../../kit/json.ts';

/**
 * Commands that act on pages, such as navigation. Like the commands of the Input domain, they wait while a person has
 * control.
 */
const PAGE_ACTION_COMMANDS: ReadonlySet<string> = new Set([
  'Page.navigate',
  'Page.reload',
  'Page.navigateToHistoryEntry',
  'Page.close',
  'Page.bringToFront',
  'Page.handleJavaScriptDialog',
  'Target.activateTarget',
  'Target.closeTarget',
  'DOM.setFileInputFiles',
]);
/** Commands of the Input domain that configure input. */
const INPUT_SETTINGS: ReadonlySet<string> = new Set(['Input.setIgnoreInputEvents', 'Input.setInterceptDrags']);
/** This command waits if it is sent with a user gesture, because its script can then do whatever a click can do. */
const EVALUATE = 'Runtime.evaluate';
/**
 * These commands pass in a masked hand-off, because the person's page would otherwise hang. They must not change
 * anything: a changed request, or a response with a redirect, could send the typed text to another server.
 */
export const CONTINUE_COMMANDS: ReadonlySet<string> = new Set(['Fetch.continueRequest', 'Fetch.continueResponse']);
/** Commands whose responses contain the titles of pages. */
export const TITLE_COMMANDS: ReadonlySet<string> = new Set(['Target.getTargets', 'Target.getTargetInfo']);

/**
 * Commands that pass in a masked hand-off: they reveal nothing about the content of pages, and client libraries send
 * them automatically when pages open. All other commands wait, including unknown ones.
 */
const PASSING_COMMANDS: ReadonlySet<string> = new Set([
  ...['Berth.handoff', 'Browser.close', 'Browser.getVersion', 'Browser.setDownloadBehavior', 'Schema.getDomains'],
  ...['Target.setAutoAttach', 'Target.setDiscoverTargets', 'Target.attachToTarget', 'Target.attachToBrowserTarget'],
  ...['Target.detachFromTarget', 'Target.getTargets', 'Target.getTargetInfo', 'Target.getBrowserContexts'],
  ...['Page.enable', 'Page.getFrameTree', 'Page.setLifecycleEventsEnabled', 'Page.screencastFrameAck'],
  ...['Page.createIsolatedWorld', 'Page.setInterceptFileChooserDialog', 'Page.getLayoutMetrics', 'Page.stopScreencast'],
  ...['Runtime.enable', 'Runtime.disable', 'Runtime.runIfWaitingForDebugger', 'Runtime.releaseObject'],
  ...[
    'Runtime.releaseObjectGroup',
    'Log.enable',
    'Log.disable',
    'Network.enable',
    'Network.disable',
    'Inspector.enable',
  ],
  ...[
    'Performance.enable',
    'Performance.disable',
    'Security.enable',
    'Fetch.disable',
    'Fetch.failRequest',
    ...CONTINUE_COMMANDS,
  ],
  ...['Fetch.continueWithAuth', 'ServiceWorker.enable'],
]);
const PASSING_DOMAIN_PREFIX = 'Emulation.';
/** This command passes if its script is empty, because clients create their isolated world with an empty script. */
const NEW_DOCUMENT_SCRIPT = 'Page.addScriptToEvaluateOnNewDocument';

const isPageAction = (method: string): boolean =>
  PAGE_ACTION_COMMANDS.has(method) || (method.startsWith('Input.') && !INPUT_SETTINGS.has(method));

/** Whether a command with this method may have to be delayed or changed. */
export const mayWait = (method: string, { wasRequested, isMasked, allowedOrigins }: Control): boolean =>
  isPageAction(method) ||
  (wasRequested && method === EVALUATE) ||
  (allowedOrigins !== undefined && CONTINUE_COMMANDS.has(method)) ||
  (isMasked &&
    (CONTINUE_COMMANDS.has(method) ||
      TITLE_COMMANDS.has(method) ||
      !(PASSING_COMMANDS.has(method) || method.startsWith(PASSING_DOMAIN_PREFIX))));

export function mustWait({ method, params }: Command, { wasRequested, isMasked }: Control): boolean {
  if (isPageAction(method) || (wasRequested && method === EVALUATE && params.userGesture === true)) return true;
  if (!isMasked || PASSING_COMMANDS.has(method) || method.startsWith(PASSING_DOMAIN_PREFIX)) return false;
  return method !== NEW_DOCUMENT_SCRIPT || params.source !== '';
}

/**
 * Whether the command continues a request that the guard of the allowed origins has already checked. An agent that
 * intercepts requests of the whole browser gets a request after the guard, and could change its URL.
 */
export const hasPassedGuard = ({ method, isForBrowser }: Command, { allowedOrigins }: Control): boolean =>
  allowedOrigins !== undefined && isForBrowser && CONTINUE_COMMANDS.has(method);

/** The parameters that continue an intercepted request as the page sent it. */
export const unchangedRequestParams = ({ requestId = null, interceptResponse }: JsonObject): JsonObject => ({
  requestId,
  ...(interceptResponse === undefined ? {} : { interceptResponse }),
});
