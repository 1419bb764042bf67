// One person at the window: their socket, the page they look at, and what they do while they hold control. The newest picture
// wins: at most one is on its way to a viewer, so a slow one sees fewer and makes nobody else late.
import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import type { DriveMessage, ServerMessage, TabState, ViewerMessage } from '../../../contract/live-messages.ts';
import type { Watched } from '../../domain/limits/waiting-bytes.ts';
import type { LinkClaims } from '../../domain/live/links.ts';
import type { Offer } from '../../domain/live/live-view.ts';
import type { Control, Takeover } from '../../domain/live/takeover.ts';
import type { ViewedPage } from '../../domain/live/viewed-page.ts';
import type { Picture, Viewing } from '../../domain/live/viewing.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { guarded } from '../../kit/guard.ts';
import type { Log } from '../../kit/log.ts';
import { loopWatch, type Work } from '../../kit/loop-watch.ts';
import type { Closeable } from '../../kit/scope.ts';
import { frameMessage } from './frame-message.ts';
import { readViewerMessage } from './read-message.ts';

const PING_MS = 10_000;
/** Two pings without a byte. */
const SILENCE_MS = 25_000;
const RENEW_MS = 10_000;
const CLOSE_MS = 2_000;
/** Text that may wait for a viewer who reads nothing; more, and the viewer is gone. */
const BEHIND_BYTES_MAX = 4 * 1024 ** 2;
const UPLOADS = '/tmp/.uploads/';

export interface ViewerParts {
  readonly socket: WebSocket;
  readonly claims: LinkClaims;
  /** Who comes again after a lost connection names who they were, and goes on. */
  readonly holder: string | undefined;
  readonly viewing: Viewing;
  readonly takeover: Takeover;
  /** Counts what this viewer has not read. */
  readonly waiting: Watched;
  readonly clock: Clock;
  readonly log: Log;
}

export class Viewer {
  readonly #parts: ViewerParts;
  readonly #holder: string;
  readonly #over = new AbortController();
  readonly #owned: Closeable[] = [];
  readonly gone: Promise<void>;
  #watching: { readonly page: string; readonly frames: Closeable } | undefined;
  #waitingPicture: Picture | undefined;
  #pictureOnItsWay = false;
  #control: Control | undefined;
  #taking = false;
  readonly #icons = new Set<string>();
  #heardMs: number;
  readonly #work: Work;

  constructor(parts: ViewerParts) {
    this.#parts = parts;
    this.#work = { what: 'messages of a viewer', sessionId: parts.claims.session };
    this.#holder = parts.holder ?? randomUUID();
    this.#heardMs = parts.clock.monotonicMs();
    this.gone = new Promise(resolve => parts.socket.once('close', () => resolve(this.#left())));
    const hear = (data: RawData, binary: boolean): void => this.#hear(data, binary);
    parts.socket.on('message', guarded(this.#failed, hear));
    parts.socket.on('pong', () => this.#heard());
    parts.socket.on('error', error => parts.log.debug('live.socket_error', { reason: reason(error) }));
  }

  /** Shows what there is; from here on it follows. */
  begin(): void {
    const { viewing, takeover, claims } = this.#parts;
    this.#owned.push(
      viewing.onChange(page => this.#changed(page)),
      takeover.onChange(() => this.#tellControl()),
    );
    this.#say({ type: 'welcome', right: claims.right, holder: this.#holder });
    this.#tellTabs();
    this.#tellControl();
    this.#watch(claims.page ?? viewing.tabs.find(tab => tab.visible)?.page ?? viewing.tabs[0]?.page);
    if (takeover.control?.holder === this.#holder) this.#take().catch(this.#failed);
    this.#beat().catch(this.#failed);
    this.#renew().catch(this.#failed);
  }

  /** The session ends, or the address was revoked. */
  end(why: string): void {
    this.#say({ type: 'ended', why });
    this.#parts.socket.close(1000, why.slice(0, 120));
  }

  /** A page has downloaded something that this person may have. */
  offer({ name, size, url }: Offer): void {
    this.#say({ type: 'download', name, size, url });
  }

  /** Too many bytes wait, and this viewer has most of them. */
  tooSlow(): void {
    const { socket } = this.#parts;
    socket.close(1013, 'the viewer reads too slowly');
    const late = setTimeout(() => socket.terminate(), CLOSE_MS);
    socket.once('close', () => clearTimeout(late));
  }

  /** Another process goes on with the session: the page comes back by itself. */
  handOver(): void {
    this.#parts.socket.close(1001, 'the service restarts');
  }

  /** What this person said, or is to be shown, could not be handled: their view ends, and comes back by itself. */
  readonly #failed = (error: unknown): void => {
    const { log, socket } = this.#parts;
    log.error('live.message_failed', { error });
    socket.close(1011, 'a message of this view could not be handled');
  };

  #hear(data: unknown, binary: boolean): void {
    this.#heard();
    loopWatch.enter(this.#work);
    const message = !binary && Buffer.isBuffer(data) ? readViewerMessage(data) : undefined;
    if (message) this.#obey(message);
    else this.#parts.socket.close(1003, 'this is no message of a live view');
    loopWatch.leave();
  }

  #obey(message: ViewerMessage): void {
    switch (message.type) {
      case 'watch':
        return this.#watch(message.page);
      case 'drawn':
        this.#pictureOnItsWay = false;
        return this.#sendPicture();
      case 'take':
        return void this.#take().catch(this.#failed);
      case 'give':
        return void this.#give(message.fence).catch(this.#failed);
      default:
        return this.#drive(message);
    }
  }

  // ---- watching --------------------------------------------------------------------------------------------------------

  #watch(id: string | undefined): void {
    const { claims, viewing } = this.#parts;
    if (id === undefined || (claims.page !== undefined && id !== claims.page)) return;
    if (this.#watching?.page === id) return;
    const driven = this.#control !== undefined;
    this.#stopWatching();
    const frames = viewing.watch(id, picture => this.#see(id, picture));
    if (!frames) return;
    this.#watching = { page: id, frames };
    this.#sendPicture(); // the newest came before we knew whose it was
    if (driven) viewing.page(id)?.setControlled(true);
    this.#tellPage(id);
  }

  #stopWatching(): void {
    if (!this.#watching) return;
    if (this.#control) this.#parts.viewing.page(this.#watching.page)?.setControlled(false);
    void this.#watching.frames.close();
    this.#watching = undefined;
    this.#waitingPicture = undefined;
  }

  #see(page: string, picture: Picture): void {
    if (this.#watching && this.#watching.page !== page) return;
    this.#waitingPicture = picture;
    this.#sendPicture();
  }

  #sendPicture(): void {
    const picture = this.#waitingPicture;
    const { socket } = this.#parts;
    if (!picture || !this.#watching || this.#pictureOnItsWay || socket.readyState !== socket.OPEN) return;
    this.#waitingPicture = undefined;
    this.#pictureOnItsWay = true;
    socket.send(frameMessage(this.#watching.page, picture), { binary: true });
    this.#parts.waiting.note();
  }

  // ---- control ---------------------------------------------------------------------------------------------------------

  /** Asked for again by who has it, or is getting it, it stays under the fence that they are told. */
  async #take(): Promise<void> {
    const { takeover, viewing, claims } = this.#parts;
    if (claims.right !== 'control') return this.#refuse('take', 'This address is for watching only.');
    if (this.#taking || (this.#control && takeover.isFresh(this.#control.fence))) return;
    this.#taking = true;
    const control = await takeover.take(this.#holder).catch(() => undefined);
    this.#taking = false;
    if (!control) return this.#refuse('take', 'Somebody else is in control.');
    if (this.#over.signal.aborted) return;
    this.#control = control;
    const page = this.#watching && viewing.page(this.#watching.page);
    page?.setControlled(true);
    page?.toFront();
    this.#tellControl();
  }

  async #give(fence: number): Promise<void> {
    if (this.#control?.fence !== fence) return;
    this.#letGo();
    await this.#parts.takeover.giveBack(fence);
  }

  #letGo(): void {
    this.#control = undefined;
    if (this.#watching) this.#parts.viewing.page(this.#watching.page)?.setControlled(false);
  }

  async #renew(): Promise<void> {
    const { clock, takeover } = this.#parts;
    while (!this.#over.signal.aborted) {
      await clock.sleep(RENEW_MS, this.#over.signal).catch(() => {});
      const control = this.#control;
      if (!control || this.#over.signal.aborted) continue;
      // The database may be away for a moment; the lease has time for another try.
      const renewed = await takeover.renew(control).catch(() => takeover.isFresh(control.fence));
      if (!renewed && this.#control === control) this.#tellControl();
    }
  }

  /** The right is checked here, at every message: what the page shows or hides protects nothing. */
  #drive(message: DriveMessage): void {
    const { claims, takeover, viewing } = this.#parts;
    if (claims.right !== 'control' || !this.#control || this.#control.fence !== message.fence)
      return this.#refuse(message.type, 'You are not in control.');
    if (!takeover.isFresh(message.fence)) return this.#refuse(message.type, 'Your control has ended.');
    if (message.type === 'newTab') return viewing.newTab();
    if (claims.page !== undefined && message.page !== claims.page)
      return this.#refuse(message.type, 'This address is for another page.');
    const page = viewing.page(message.page);
    if (page) this.#onPage(page, message);
  }

  #onPage(page: ViewedPage, message: Exclude<DriveMessage, { type: 'newTab' }>): void {
    switch (message.type) {
      case 'mouse':
        if (message.action === 'move') this.#tellCursor(page, message.x, message.y).catch(this.#failed);
        return page.mouse(message);
      case 'wheel':
        return page.wheel(message);
      case 'touch':
        return page.touch(message);
      case 'key':
        return page.key(message);
      case 'text':
        return page.text(message.text);
      case 'compose':
        return page.compose(message);
      case 'copy':
        return void page
          .copy(message.cut)
          .then(text => this.#say({ type: 'copied', text }))
          .catch(this.#failed);
      case 'navigate':
        if (!page.navigate(message.url)) this.#refuse('navigate', 'Only http and https addresses can be opened here.');
        return;
      case 'history':
        return void page.history(message.action).catch(() => {});
      case 'dialog':
        return page.dialog(message.accept, message.text);
      case 'choose':
        return page.choose(message.options);
      case 'files':
        return page.files(message.names.filter(isName).map(name => UPLOADS + name));
      case 'front':
        return page.toFront();
      case 'close':
        return page.closePage();
    }
  }

  // ---- telling ---------------------------------------------------------------------------------------------------------

  #changed(page: string | undefined): void {
    const { viewing, claims } = this.#parts;
    if (page !== undefined) {
      if (page === this.#watching?.page) this.#tellPage(page);
      return this.#tellTabs();
    }
    this.#tellTabs();
    const there = this.#watching && viewing.page(this.#watching.page) !== undefined;
    if (there) return;
    this.#stopWatching();
    if (claims.page === undefined) this.#watch((viewing.tabs.find(tab => tab.visible) ?? viewing.tabs[0])?.page);
  }

  #tellTabs(): void {
    const { viewing, claims } = this.#parts;
    const tabs = viewing.tabs.filter(tab => claims.page === undefined || tab.page === claims.page);
    this.#say({ type: 'tabs', tabs });
    for (const tab of tabs) this.#tellIcon(tab);
  }

  #tellIcon(tab: TabState): void {
    const url = tab.faviconUrl;
    const data = this.#icons.has(url) ? undefined : this.#parts.viewing.iconOf(tab);
    if (data === undefined) return;
    this.#icons.add(url);
    this.#say({ type: 'icon', url, data });
  }

  #tellPage(id: string): void {
    const page = this.#parts.viewing.page(id);
    if (!page) return;
    const { visible: _, ...state } = page.state;
    this.#say({ type: 'page', page: id, ...state });
  }

  #tellControl(): void {
    const { control } = this.#parts.takeover;
    if (this.#control && control?.fence !== this.#control.fence) this.#letGo();
    const who = !control ? 'agent' : this.#control ? 'you' : 'other';
    this.#say({ type: 'control', who, fence: this.#control?.fence ?? 0 });
  }

  async #tellCursor(page: ViewedPage, x: number, y: number): Promise<void> {
    const cursor = await page.cursor(x, y, this.#parts.clock.monotonicMs());
    if (cursor !== undefined) this.#say({ type: 'cursor', cursor });
  }

  #refuse(what: string, why: string): void {
    this.#say({ type: 'refused', what, why });
  }

  #say(message: ServerMessage): void {
    const { socket } = this.#parts;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > BEHIND_BYTES_MAX) return socket.terminate();
    socket.send(JSON.stringify(message));
    this.#parts.waiting.note();
  }

  // ---- the connection --------------------------------------------------------------------------------------------------

  #heard(): void {
    this.#heardMs = this.#parts.clock.monotonicMs();
  }

  async #beat(): Promise<void> {
    const { socket, clock } = this.#parts;
    while (!this.#over.signal.aborted) {
      await clock.sleep(PING_MS, this.#over.signal).catch(() => {});
      if (this.#over.signal.aborted) return;
      if (clock.monotonicMs() - this.#heardMs > SILENCE_MS) return socket.terminate();
      socket.ping();
    }
  }

  /** Control stays theirs until the lease ends: whoever lost their connection has that long to come back. */
  #left(): void {
    this.#over.abort(new Error('the viewer is gone'));
    this.#stopWatching();
    for (const one of this.#owned) void one.close();
  }
}

const isName = (name: string): boolean => !/[/\0]/.test(name) && name !== '.' && name !== '..';
