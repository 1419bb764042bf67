// Restricts the hosts from which documents are loaded in main frames and, if the rule requires it, in inner frames.
// Chromium pauses every document request as the last step before the network and reports it on the guard's channel,
// whatever started the request: a page, a popup or a redirect. A page that was loaded without the network, for example
// by a service worker, is checked afterwards and replaced by `about:blank` if it is not allowed.
import { type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { CommandSender } from './command-sender.ts';
import { type IncomingMessage, SERVER_ERROR } from './messages.ts';
import { type Channel, type ChannelOwner, type Mux, type OnResponse, ProtocolFailure } from './mux.ts';

export interface NavigationAttempt {
  /** Absent if only the host is known. */
  readonly url?: string;
  /** The target id of the page. */
  readonly targetId: string;
}

export interface NavigationRule {
  /** Whether a document of this host may be loaded in a main frame or in an inner frame. */
  allows(hostname: string, frame: 'main' | 'inner', url: string): boolean;
  /** Called when a document has been refused. Must not throw. */
  onRefused(hostname: string, attempt: NavigationAttempt): void;
}

/** Schemes whose host is checked. URLs with other schemes, such as `about:` and `data:`, have no host. */
const SCHEMES_WITH_HOST = new Set(['http:', 'https:', 'blob:', 'filesystem:']);
const FRAME_TYPES = new Set(['iframe', 'fencedframe']);
const DOCUMENT_REQUESTS: JsonObject = { patterns: [{ urlPattern: '*', resourceType: 'Document' }] };
/** A page that does not respond within this time is treated as not allowed. */
const FRAME_TREE_TIMEOUT_MS = 2_000;

interface PageCheck {
  /** Whether any channel was attached to the page when the last event was sent. */
  isAttached: boolean;
  /** Whether the page has changed since the check began, so that it must be checked again. */
  isOutdated: boolean;
}

export class NavigationGuard implements ChannelOwner {
  readonly #mux: Mux;
  readonly #rule: NavigationRule;
  readonly #commandSender: CommandSender;
  /** The checks that are running, by the target id of the page. */
  readonly #checks = new Map<string, PageCheck>();
  #root: Channel | undefined;

  constructor(mux: Mux, rule: NavigationRule) {
    this.#mux = mux;
    this.#rule = rule;
    this.#commandSender = new CommandSender(mux);
  }

  async open(beforeUse: (channelId: string) => void): Promise<void> {
    const root = await this.#mux.attachToBrowser(this, beforeUse);
    this.#root = root;
    await this.#commandSender.send(root, 'Fetch.enable', DOCUMENT_REQUESTS);
    await this.#commandSender.send(root, 'Target.setDiscoverTargets', { discover: true });
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  handleMessage(channel: Channel, message: Buffer): void {
    const event = this.#commandSender.receive(channel, message);
    if (event) this.#handleEvent(channel, event);
  }

  fail(_channel: Channel, id: number, message: string, onResponse: OnResponse | undefined): void {
    void onResponse?.({ id, error: { code: SERVER_ERROR, message } });
  }

  batchEnd(): void {}

  #handleEvent(channel: Channel, { method, params }: IncomingMessage): void {
    if (method === 'Fetch.requestPaused') void this.#onRequestPaused(channel, params ?? {});
    if (method === 'Target.targetCreated' || method === 'Target.targetInfoChanged') void this.#checkPage(params);
    const childId = textAt(params, 'sessionId');
    if (method === 'Target.attachedToTarget' && childId)
      this.#mux.open(childId, this, channel, textAt(objectAt(params, 'targetInfo'), 'targetId'));
    if (method === 'Target.detachedFromTarget' && childId) {
      const child = this.#mux.find(childId);
      if (child) this.#mux.drop(child);
    }
  }

  async #onRequestPaused(root: Channel, params: JsonObject): Promise<void> {
    const requestId = textAt(params, 'requestId') ?? '';
    const url = textAt(objectAt(params, 'request'), 'url') ?? '';
    const frameId = textAt(params, 'frameId') ?? '';
    const hostname = hostOf(url);
    const isAllowed = (frame: 'main' | 'inner'): boolean =>
      hostname === undefined || this.#rule.allows(hostname, frame, url);
    // The browser does not send the request until it is continued. If continuing fails, the request or the browser is
    // gone, so errors are ignored.
    try {
      const mayLoad =
        (isAllowed('main') && isAllowed('inner')) ||
        isAllowed((await this.#isMainFrame(root, frameId)) ? 'main' : 'inner');
      if (hostname === undefined || mayLoad)
        return void (await this.#commandSender.send(root, 'Fetch.continueRequest', { requestId }));
      this.#rule.onRefused(hostname, { url, targetId: frameId });
      await this.#commandSender.send(root, 'Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
    } catch {}
  }

  /**
   * Whether a frame is a main frame. The id of a main frame is also the id of its target, so the target is queried. It
   * is queried each time, because the events about a target may arrive after its first request.
   */
  async #isMainFrame(root: Channel, frameId: string): Promise<boolean> {
    try {
      const infoResponse = await this.#commandSender.send(root, 'Target.getTargetInfo', { targetId: frameId });
      return !FRAME_TYPES.has(textAt(objectAt(infoResponse, 'targetInfo'), 'type') ?? '');
    } catch (error) {
      return !(error instanceof ProtocolFailure);
    }
  }

  /**
   * Checks a page after it has loaded, because documents that come from a service worker, a client that fulfills
   * requests, or a blob cause no network request.
   */
  async #checkPage(params: JsonObject | undefined): Promise<void> {
    const info = objectAt(params, 'targetInfo');
    const targetId = textAt(info, 'targetId');
    const root = this.#root;
    if (!targetId || !root || textAt(info, 'type') !== 'page') return;
    const isAttached = info?.attached === true;
    const isRefused = this.#refusedHost(textAt(info, 'url')) !== undefined;
    const runningCheck = this.#checks.get(targetId);
    if (runningCheck) {
      // The check itself attaches to the page and detaches. If no other channel is attached, both cause an event, which
      // must not lead to another check.
      if (isRefused && isAttached === runningCheck.isAttached) runningCheck.isOutdated = true;
      runningCheck.isAttached = isAttached;
      return;
    }
    if (!isRefused) return;
    const check: PageCheck = { isAttached, isOutdated: true };
    this.#checks.set(targetId, check);
    while (check.isOutdated) {
      check.isOutdated = false;
      await this.#clearIfRefused(root, targetId).catch(() => {});
    }
    this.#checks.delete(targetId);
  }

  /**
   * Checks the loaded document itself, because the URL in the target info may be the URL of a refused or pending
   * navigation.
   */
  async #clearIfRefused(root: Channel, targetId: string): Promise<void> {
    const attachResponse = await this.#commandSender.send(root, 'Target.attachToTarget', { targetId, flatten: true });
    const page = this.#mux.find(textAt(attachResponse, 'sessionId') ?? '');
    if (!page) return;
    try {
      const hostname = await this.#refusedHostOf(page);
      if (hostname === undefined) return;
      this.#rule.onRefused(hostname, { targetId });
      await this.#commandSender.send(page, 'Page.navigate', { url: 'about:blank' });
    } finally {
      await this.#commandSender.send(root, 'Target.detachFromTarget', { sessionId: page.id });
      this.#mux.restoreOverrides(targetId, this);
    }
  }

  async #refusedHostOf(page: Channel): Promise<string | undefined> {
    try {
      const treeResponse = await this.#commandSender.send(page, 'Page.getFrameTree', {}, FRAME_TREE_TIMEOUT_MS);
      return this.#refusedHost(textAt(objectAt(objectAt(treeResponse, 'frameTree'), 'frame'), 'url'));
    } catch {
      return '(unknown)';
    }
  }

  /** Returns the host of the URL if a main frame may not load the URL. Otherwise returns undefined. */
  #refusedHost(url: string | undefined): string | undefined {
    const hostname = hostOf(url);
    return hostname === undefined || this.#rule.allows(hostname, 'main', url ?? '') ? undefined : hostname;
  }
}

/** Returns the host in the format that rules use. Undefined for a URL without a host. */
function hostOf(address: string | undefined): string | undefined {
  const url = URL.parse(address ?? '');
  if (!url || !SCHEMES_WITH_HOST.has(url.protocol)) return undefined;
  const { hostname } = url.hostname === '' ? (URL.parse(url.origin) ?? url) : url;
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
