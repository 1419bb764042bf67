// The server's own channel to one browser: commands with answers, and what it must know of the targets: which pages
// there are, and whether their renderer answers. It never enables anything on a page.
import { SingleFlight } from '../../kit/single-flight.ts';
import { WaitExpired, within } from '../../kit/wait.ts';
import { type JsonObject, objectAt, textAt } from './json.ts';
import { answerId, encode, type Incoming, parseIncoming, SERVER_ERROR } from './messages.ts';
import { type Channel, type ChannelOwner, type Mux, type OnAnswer, ProtocolFailure } from './mux.ts';

const COMMAND_MS = 15_000;
/** A page that is stuck is asked again at most this long; then it counts as gone until the next client asks. */
const STUCK_PAGE_MS = 6 * 3600_000;
const only = (type: string, hold = false): JsonObject => ({
  autoAttach: true,
  waitForDebuggerOnStart: hold,
  flatten: true,
  filter: [{ type }, { exclude: true }],
});

export interface Page {
  readonly targetId: string;
  /** The tab it is shown in: a target of its own, which Puppeteer attaches to first. */
  readonly tabId: string | undefined;
  readonly contextId: string | undefined;
  readonly channel: Channel;
}

export interface Geolocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly accuracy?: number;
}

export class Control implements ChannelOwner {
  readonly #mux: Mux;
  readonly #pages = new Map<string, Page>();
  readonly #probes = new SingleFlight<string, boolean>();
  readonly #firstPage = Promise.withResolvers<Page>();
  readonly #tabs = new Set<Channel>();
  #root: Channel | undefined;
  #geolocation: Geolocation | undefined;
  #id = 0;

  constructor(mux: Mux) {
    this.#mux = mux;
  }

  async open(beforeUse: (channelId: string) => void): Promise<void> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse);
    await this.send('Target.setDiscoverTargets', { discover: true });
    await this.send('Target.setAutoAttach', only('tab'));
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  get pages(): readonly Page[] {
    return [...this.#pages.values()];
  }

  firstPage(): Promise<Page> {
    return this.#firstPage.promise;
  }

  /** Every page, also those to come, is at this place, and may know it without asking anybody. */
  async locate(geolocation: Geolocation): Promise<void> {
    this.#geolocation = { accuracy: 1, ...geolocation };
    await this.send('Browser.setPermission', { permission: { name: 'geolocation' }, setting: 'granted' });
    await this.send('Target.setAutoAttach', only('tab', true));
    for (const tab of this.#tabs) await this.send('Target.setAutoAttach', only('page', true), tab);
    for (const page of this.pages) await this.#place(page.channel);
  }

  /** The same in a browser context that a client made. */
  async locateContext(contextId: string): Promise<void> {
    if (!this.#geolocation) return;
    const granted = { permission: { name: 'geolocation' }, setting: 'granted', browserContextId: contextId };
    await this.send('Browser.setPermission', granted);
  }

  /** A command on the browser, or on one channel of ours. */
  send(method: string, params: JsonObject = {}, channel = this.#root, ms = COMMAND_MS): Promise<JsonObject> {
    if (!channel) throw new Error('the control channel is not open');
    if (this.#mux.isClosed) throw new Error('the browser is closed');
    const id = ++this.#id;
    const answered = Promise.withResolvers<JsonObject>();
    channel.pending.set(id, answer => {
      if (answer.error) answered.reject(new ProtocolFailure(method, answer.error.code, answer.error.message));
      else answered.resolve(answer.result ?? {});
      return answer;
    });
    this.#mux.pipe.send([encode({ id, method, params, sessionId: channel.id })]);
    return within(ms, `Chromium to answer ${method}`, () => answered.promise).finally(() => channel.pending.delete(id));
  }

  /** Waits until the page's renderer has run a no-op; false when it is gone or stays stuck. Callers share one question. */
  responds(page: Page): Promise<boolean> {
    return this.#probes.run(page.targetId, async () => {
      for (;;) {
        try {
          await this.send('Runtime.evaluate', { expression: '0' }, page.channel, STUCK_PAGE_MS);
          return true;
        } catch (error) {
          // A crashed page answers again once it is reloaded; one that is gone never does.
          if (!(error instanceof ProtocolFailure) || !this.#pages.has(page.targetId)) return false;
          if (error.code !== SERVER_ERROR) return true;
        }
      }
    });
  }

  /** The pages whose renderer did not answer within `ms`. */
  async unresponsivePages(ms: number): Promise<readonly Page[]> {
    const stuck: Page[] = [];
    const ask = async (page: Page): Promise<void> => {
      try {
        await within(ms, `page ${page.targetId} to answer`, () => this.responds(page));
      } catch (error) {
        if (!(error instanceof WaitExpired)) throw error;
        stuck.push(page);
      }
    };
    await Promise.all(this.pages.map(ask));
    return stuck.filter(page => this.#pages.has(page.targetId));
  }

  incoming(channel: Channel, message: Buffer): void {
    const id = answerId(message);
    const onAnswer = id === undefined ? undefined : channel.pending.get(id);
    if (id !== undefined && !onAnswer) return;
    const parsed = parseIncoming(message);
    if (id !== undefined) {
      channel.pending.delete(id);
      void onAnswer?.(parsed);
    } else this.#event(channel, parsed);
  }

  fail(_channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void {
    void onAnswer?.({ id, error: { code: SERVER_ERROR, message } });
  }

  rest(): void {}

  #event(channel: Channel, event: Incoming): void {
    const info = objectAt(event.params, 'targetInfo');
    const targetId = textAt(info, 'targetId') ?? textAt(event.params, 'targetId');
    switch (event.method) {
      case 'Target.attachedToTarget':
        return this.#attached(channel, textAt(event.params, 'sessionId'), info);
      case 'Target.detachedFromTarget':
        return this.#detached(textAt(event.params, 'sessionId'));
      case 'Target.targetCrashed':
        if (targetId) this.#mux.targetCrashed(targetId);
        return;
    }
  }

  #attached(parent: Channel, id: string | undefined, info: JsonObject | undefined): void {
    const targetId = textAt(info, 'targetId');
    if (!id || !targetId) return;
    const channel = this.#mux.open(id, this, parent, targetId);
    if (textAt(info, 'type') === 'tab') {
      // The tab may be gone again before this is answered.
      this.#tabs.add(channel);
      void this.send('Target.setAutoAttach', only('page', this.#geolocation !== undefined), channel).catch(() => {});
      return this.#resume(channel);
    }
    const page = { targetId, tabId: parent.targetId, contextId: textAt(info, 'browserContextId'), channel };
    this.#pages.set(targetId, page);
    this.#firstPage.resolve(page);
    void this.#place(channel);
    this.#resume(channel);
  }

  async #place(channel: Channel): Promise<void> {
    if (!this.#geolocation) return;
    await this.send('Emulation.setGeolocationOverride', { ...this.#geolocation }, channel).catch(() => {});
  }

  /** Targets are held at their start only while there is something to set in them. */
  #resume(channel: Channel): void {
    if (this.#geolocation) void this.send('Runtime.runIfWaitingForDebugger', {}, channel).catch(() => {});
  }

  #detached(id: string | undefined): void {
    const channel = id === undefined ? undefined : this.#mux.find(id);
    if (!channel) return;
    if (channel.targetId && this.#pages.get(channel.targetId)?.channel === channel)
      this.#pages.delete(channel.targetId);
    this.#tabs.delete(channel);
    this.#mux.drop(channel);
  }
}
