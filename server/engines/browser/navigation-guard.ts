// Keeps documents to the hosts that a session may visit: those of main frames, and where the rule says so those of frames
// in them. Chromium asks this channel, the nearest to the network, about each document before anything of it is sent:
// pages, popups and redirects, by whomever they were begun. A page that came to be without the network is looked at when
// it is there, and emptied.
import { type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { Asker } from './asker.ts';
import { type Incoming, SERVER_ERROR } from './messages.ts';
import { type Channel, type ChannelOwner, type Mux, type OnAnswer, ProtocolFailure } from './mux.ts';

export interface NavigationAttempt {
  /** Absent where only the host is known. */
  readonly url?: string;
  /** Of the page. */
  readonly targetId: string;
}

export interface NavigationRule {
  /** Whether a document may come from there, in a main frame or in one inside a page. */
  allows(hostname: string, frame: 'main' | 'inner'): boolean;
  /** Must not throw. */
  refused(hostname: string, attempt: NavigationAttempt): void;
}

/** Of these the host counts; `about:`, `data:` and their kind have none. */
const WITH_HOST = new Set(['http:', 'https:', 'blob:', 'filesystem:']);
const FRAME_TYPES = new Set(['iframe', 'fencedframe']);
const DOCUMENTS: JsonObject = { patterns: [{ urlPattern: '*', resourceType: 'Document' }] };
/** A renderer that does not say where it is by then is taken to be where it may not be. */
const LOOK_MS = 2_000;

export class NavigationGuard implements ChannelOwner {
  readonly #mux: Mux;
  readonly #rule: NavigationRule;
  readonly #asker: Asker;
  /** Pages that are being looked at. */
  readonly #looking = new Set<string>();
  #root: Channel | undefined;

  constructor(mux: Mux, rule: NavigationRule) {
    this.#mux = mux;
    this.#rule = rule;
    this.#asker = new Asker(mux);
  }

  async open(beforeUse: (channelId: string) => void): Promise<void> {
    const root = await this.#mux.attachToBrowser(this, beforeUse);
    this.#root = root;
    await this.#asker.send(root, 'Fetch.enable', DOCUMENTS);
    await this.#asker.send(root, 'Target.setDiscoverTargets', { discover: true });
  }

  incoming(channel: Channel, message: Buffer): void {
    const event = this.#asker.event(channel, message);
    if (event) this.#event(channel, event);
  }

  fail(_channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void {
    void onAnswer?.({ id, error: { code: SERVER_ERROR, message } });
  }

  rest(): void {}

  #event(channel: Channel, { method, params }: Incoming): void {
    if (method === 'Fetch.requestPaused') void this.#paused(channel, params ?? {});
    if (method === 'Target.targetCreated' || method === 'Target.targetInfoChanged') void this.#moved(params);
    const childId = textAt(params, 'sessionId');
    if (method === 'Target.attachedToTarget' && childId)
      this.#mux.open(childId, this, channel, textAt(objectAt(params, 'targetInfo'), 'targetId'));
    if (method === 'Target.detachedFromTarget' && childId) {
      const child = this.#mux.find(childId);
      if (child) this.#mux.drop(child);
    }
  }

  async #paused(root: Channel, params: JsonObject): Promise<void> {
    const requestId = textAt(params, 'requestId') ?? '';
    const url = textAt(objectAt(params, 'request'), 'url') ?? '';
    const frameId = textAt(params, 'frameId') ?? '';
    const hostname = hostOf(url);
    const may = (frame: 'main' | 'inner'): boolean => hostname === undefined || this.#rule.allows(hostname, frame);
    // Until it is answered nothing is sent; where the answer fails, the request is gone or the browser is.
    try {
      const allowed = (may('main') && may('inner')) || may((await this.#isMainFrame(root, frameId)) ? 'main' : 'inner');
      if (hostname === undefined || allowed)
        return void (await this.#asker.send(root, 'Fetch.continueRequest', { requestId }));
      this.#rule.refused(hostname, { url, targetId: frameId });
      await this.#asker.send(root, 'Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
    } catch {}
  }

  /** A main frame has the name of its target. Asked now rather than remembered: it may be younger than what we heard. */
  async #isMainFrame(root: Channel, frameId: string): Promise<boolean> {
    try {
      const found = await this.#asker.send(root, 'Target.getTargetInfo', { targetId: frameId });
      return !FRAME_TYPES.has(textAt(objectAt(found, 'targetInfo'), 'type') ?? '');
    } catch (error) {
      return !(error instanceof ProtocolFailure);
    }
  }

  /** A service worker, a client that answers in the server's place, a frame's own blob: none of them asks the network. */
  async #moved(params: JsonObject | undefined): Promise<void> {
    const info = objectAt(params, 'targetInfo');
    const targetId = textAt(info, 'targetId');
    if (!targetId || !this.#root || textAt(info, 'type') !== 'page' || this.#looking.has(targetId)) return;
    if (this.#foreignHost(textAt(info, 'url')) === undefined) return;
    this.#looking.add(targetId);
    await this.#emptyForeign(this.#root, targetId).catch(() => {});
    this.#looking.delete(targetId);
  }

  /** The address of a page may be that of a page which was refused, or which is still to come. */
  async #emptyForeign(root: Channel, targetId: string): Promise<void> {
    const attached = await this.#asker.send(root, 'Target.attachToTarget', { targetId, flatten: true });
    const page = this.#mux.find(textAt(attached, 'sessionId') ?? '');
    if (!page) return;
    try {
      const hostname = await this.#hostShown(page);
      if (hostname === undefined) return;
      this.#rule.refused(hostname, { targetId });
      await this.#asker.send(page, 'Page.navigate', { url: 'about:blank' });
    } finally {
      await this.#asker.send(root, 'Target.detachFromTarget', { sessionId: page.id });
      this.#mux.sayOverridesAgain(targetId, this);
    }
  }

  async #hostShown(page: Channel): Promise<string | undefined> {
    try {
      const shown = await this.#asker.send(page, 'Page.getFrameTree', {}, LOOK_MS);
      return this.#foreignHost(textAt(objectAt(objectAt(shown, 'frameTree'), 'frame'), 'url'));
    } catch {
      return '(unknown)';
    }
  }

  /** The host of an address that no main frame may show; undefined where it may. */
  #foreignHost(address: string | undefined): string | undefined {
    const hostname = hostOf(address);
    return hostname === undefined || this.#rule.allows(hostname, 'main') ? undefined : hostname;
  }
}

/** As rules name hosts; undefined for an address without one. */
function hostOf(address: string | undefined): string | undefined {
  const url = URL.parse(address ?? '');
  if (!url || !WITH_HOST.has(url.protocol)) return undefined;
  const { hostname } = url.hostname === '' ? (URL.parse(url.origin) ?? url) : url;
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
