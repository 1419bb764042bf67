// One viewer: the socket, the watched page, and the input while the viewer has control. At most one frame is in flight
// to a viewer, and only the newest frame waits to be sent, so that a slow viewer skips frames and does not delay other
// viewers.
import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import type {
  DialogState,
  DriveMessage,
  ServerMessage,
  TabState,
  ViewerMessage,
} from '../../../contract/live-messages.ts';
import type { Control } from '../../domain/handoffs/control.ts';
import type { Lease } from '../../domain/handoffs/lease.ts';
import type { BytesWatch } from '../../domain/limits/waiting-bytes.ts';
import type { LinkClaims } from '../../domain/live/links.ts';
import type { DownloadOffer } from '../../domain/live/live-view.ts';
import type { OpenDialog, ViewedPage } from '../../domain/live/viewed-page.ts';
import type { LiveFrame, OpenedPage, Viewing } from '../../domain/live/viewing.ts';
import { reason } from '../../kit/fault.ts';
import { guardListener } from '../../kit/guard.ts';
import { loopWatch, type Work } from '../../kit/loop-watch.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { frameMessage } from './frame-message.ts';
import { readViewerMessage } from './read-message.ts';

const PING_INTERVAL_MS = 10_000;
/** A viewer that sends nothing for this long is considered gone. It is sent two pings in this time. */
const SILENCE_TIMEOUT_MS = 25_000;
const RENEW_INTERVAL_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** The maximum size of unread text messages. A viewer that exceeds it is disconnected. */
const UNREAD_BYTES_MAX = 4 * 1024 ** 2;
const UPLOADS_FOLDER = '/tmp/.uploads/';
const TAB_LIMIT_TEXT = 'The browser has the maximum number of tabs. Close a tab, and try again.';
const NO_TAB_TEXT = 'The tab could not be opened, because the browser did not respond. Try again.';
const UNKNOWN_PAGE_TEXT =
  'Too many pages are open for all of them to be recorded. It is not known what must be hidden on this page, so only the viewer in control sees it.';
/**
 * Sent to viewers without control. A dialog, list or file chooser of a page may repeat text that was typed, so only the
 * viewer in control sees it.
 */
const NO_QUESTIONS = { dialog: null, select: null, files: null };

export interface ViewerParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly socket: WebSocket;
  readonly claims: LinkClaims;
  /** The id that a reconnecting viewer had before, so that the viewer keeps control. */
  readonly holder: string | undefined;
  readonly viewing: Viewing;
  readonly lease: Lease;
  /** Counts the bytes that this viewer has not read. */
  readonly bytesWatch: BytesWatch;
}

export class Viewer {
  readonly #parts: ViewerParts;
  readonly #holder: string;
  readonly #closeController = new AbortController();
  readonly #closeables: Closeable[] = [];
  readonly whenGone: Promise<void>;
  #pageWatch: { readonly page: string; readonly frames: Closeable } | undefined;
  #waitingFrame: LiveFrame | undefined;
  /** The frame that was sent last, and whether it was sent without masks. */
  #lastSentFrame: { readonly liveFrame: LiveFrame; readonly isUnmasked: boolean } | undefined;
  #isFrameInFlight = false;
  #control: Control | undefined;
  #isTakingControl = false;
  /** The opener of each page that was shown because the controlled page opened it, by page id. */
  readonly #openerByPage = new Map<string, string>();
  readonly #sentIcons = new Set<string>();
  #lastByteMs: number;
  readonly #work: Work;

  constructor(parts: ViewerParts) {
    this.#parts = parts;
    this.#work = { what: 'messages of a viewer', sessionId: parts.claims.session };
    this.#holder = parts.claims.lease ? (parts.lease.control?.holder ?? '') : (parts.holder ?? randomUUID());
    this.#lastByteMs = parts.clock.monotonicMs();
    this.whenGone = new Promise(resolve => parts.socket.once('close', () => resolve(this.#onClose())));
    const receive = (data: RawData, binary: boolean): void => this.#receive(data, binary);
    parts.socket.on('message', guardListener(this.#onFailed, receive));
    parts.socket.on('pong', () => this.#onActivity());
    parts.socket.on('error', error => parts.log.debug('live.socket_error', { reason: reason(error) }));
  }

  /** Sends the current state. Later changes are sent when they happen. */
  begin(): void {
    const { viewing, lease, claims } = this.#parts;
    if (!this.#isOpen) return; // Otherwise the subscriptions below would never be closed.
    this.#closeables.push(
      viewing.onChange(page => this.#onPageChanged(page)),
      viewing.onOpened(opened => this.#onPageOpened(opened)),
      lease.onChange(() => this.#onLeaseChange()),
      lease.onSettling(async () => {
        if (this.#control && this.#pageWatch) await viewing.page(this.#pageWatch.page)?.whenInputSent();
      }),
    );
    const { right, keyId } = claims;
    // The person in a hand-off has no agent key, so DevTools is not offered.
    this.#send({ type: 'welcome', right, holder: this.#holder, devtools: right === 'control' && keyId !== undefined });
    this.#sendTabs();
    this.#sendControl();
    this.#watch(claims.page ?? viewing.tabs.find(tab => tab.visible)?.page ?? viewing.tabs[0]?.page);
    if (lease.control?.holder === this.#holder) this.#takeControl().catch(this.#onFailed);
    this.#pingUntilClosed().catch(this.#onFailed);
    this.#renew().catch(this.#onFailed);
  }

  /**
   * Called when the session or the hand-off ends, or when the viewer's link is no longer valid. `why` is shown to the
   * viewer.
   */
  end(why: string): void {
    this.#send({ type: 'ended', why });
    this.#close(1000, why.slice(0, 120));
  }

  /** Offers a file that a page has downloaded. */
  offer({ name, size, url }: DownloadOffer): void {
    this.#send({ type: 'download', name, size, url });
  }

  /** Called when too many bytes are waiting and this viewer has the most unread bytes. */
  closeAsTooSlow(): void {
    this.#close(1013, 'the viewer reads too slowly');
  }

  /** Closes the socket, even if the viewer's page does not answer the close frame. */
  #close(code: number, closeReason: string): void {
    const { socket } = this.#parts;
    socket.close(code, closeReason);
    const timeout = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timeout));
  }

  get #isOpen(): boolean {
    const { socket } = this.#parts;
    return socket.readyState === socket.OPEN;
  }

  /** Called when another process continues the session. The viewer's page reconnects by itself. */
  closeForRestart(): void {
    this.#parts.socket.close(1001, 'the service is restarting');
  }

  /** Called when a message could not be handled. The socket is closed, and the viewer's page reconnects by itself. */
  readonly #onFailed = (error: unknown): void => {
    const { log, socket } = this.#parts;
    log.error('live.message_failed', { error });
    socket.close(1011, 'a message of this view could not be handled');
  };

  #receive(data: unknown, binary: boolean): void {
    if (!this.#isOpen) return; // Messages still arrive while the socket is closing.
    this.#onActivity();
    loopWatch.enter(this.#work);
    const message = !binary && Buffer.isBuffer(data) ? readViewerMessage(data) : undefined;
    if (message) this.#handle(message);
    else this.#parts.socket.close(1003, 'not a message of the live view');
    loopWatch.leave();
  }

  #handle(message: ViewerMessage): void {
    switch (message.type) {
      case 'watch':
        return this.#watch(message.page);
      case 'drawn':
        this.#isFrameInFlight = false;
        return this.#sendFrame();
      case 'take':
        return void this.#takeControl().catch(this.#onFailed);
      case 'give':
        return void this.#releaseControl(message.fence).catch(this.#onFailed);
      default:
        return this.#handleInput(message);
    }
  }

  // ---- watching -----------------------------------------------------------------------------------------------------

  #watch(id: string | undefined): void {
    const { claims, viewing } = this.#parts;
    if (id === undefined || (claims.page !== undefined && id !== claims.page)) return;
    if (this.#pageWatch?.page === id) return;
    const hasControl = this.#control !== undefined;
    this.#stopWatching();
    const frames = viewing.watch(id, liveFrame => this.#onFrame(id, liveFrame));
    if (!frames) return;
    this.#pageWatch = { page: id, frames };
    this.#sendFrame(); // a frame may have arrived before #pageWatch was set
    if (hasControl) viewing.page(id)?.setControlled(true);
    this.#sendPage(id);
  }

  #stopWatching(): void {
    if (!this.#pageWatch) return;
    if (this.#control) this.#parts.viewing.page(this.#pageWatch.page)?.setControlled(false);
    void this.#pageWatch.frames.close();
    this.#pageWatch = undefined;
    this.#waitingFrame = undefined;
    this.#lastSentFrame = undefined;
  }

  /** Shows a page that the controlled page opened, because a sign-in popup is used at once and closes by itself. */
  #onPageOpened({ page, openerId }: OpenedPage): void {
    const openerPage = this.#pageWatch?.page;
    if (!this.#mayDrive || openerPage === undefined || openerId !== openerPage || this.#parts.claims.page !== undefined)
      return;
    this.#openerByPage.set(page, openerPage);
    this.#watch(page);
    this.#parts.viewing.page(page)?.bringToFront();
    this.#send({ type: 'opened', page, from: openerPage });
  }

  async #openTab(): Promise<void> {
    const { viewing, claims } = this.#parts;
    const page = await viewing.newTab();
    if (page === undefined) return this.#refuse('newTab', viewing.isTabLimitReached ? TAB_LIMIT_TEXT : NO_TAB_TEXT);
    if (claims.page !== undefined) return;
    const tryShow = (): boolean => {
      if (this.#mayDrive) this.#watch(page);
      return this.#pageWatch?.page === page;
    };
    if (tryShow()) return;
    const openedListener = viewing.onOpened(opened => {
      if (opened.page === page && tryShow()) void openedListener.close();
    });
    this.#closeables.push(openedListener);
  }

  /**
   * Called when the watched page is gone. Shows its nearest opener that is still open, or otherwise the page in front.
   */
  #leaveClosedPage(closedPage: string | undefined): void {
    const { viewing, claims } = this.#parts;
    this.#stopWatching();
    if (claims.page !== undefined) return;
    const opener = closedPage === undefined ? undefined : this.#openerOf(closedPage);
    if (opener === undefined) return this.#watch((viewing.tabs.find(tab => tab.visible) ?? viewing.tabs[0])?.page);
    this.#watch(opener);
    if (this.#mayDrive) viewing.page(opener)?.bringToFront();
    this.#send({ type: 'returned', page: opener });
  }

  /** Returns the nearest opener that is still open. */
  #openerOf(closedPage: string): string | undefined {
    let opener = this.#openerByPage.get(closedPage);
    this.#openerByPage.delete(closedPage);
    while (opener !== undefined && !this.#parts.viewing.page(opener)) opener = this.#openerByPage.get(opener);
    return opener;
  }

  #onFrame(page: string, liveFrame: LiveFrame): void {
    if (this.#pageWatch && this.#pageWatch.page !== page) return;
    this.#waitingFrame = liveFrame;
    this.#sendFrame();
  }

  #sendFrame(): void {
    const liveFrame = this.#waitingFrame;
    const { socket } = this.#parts;
    if (!liveFrame || !this.#pageWatch || this.#isFrameInFlight || socket.readyState !== socket.OPEN) return;
    this.#waitingFrame = undefined;
    this.#isFrameInFlight = true;
    const isShownUnmasked = this.#seesUnmasked(liveFrame);
    if (liveFrame.isMaskUnknown && !isShownUnmasked && !this.#lastSentFrame) this.#refuse('watch', UNKNOWN_PAGE_TEXT);
    this.#lastSentFrame = { liveFrame, isUnmasked: isShownUnmasked };
    const shownFrame = isShownUnmasked ? { ...liveFrame, jpeg: liveFrame.unmasked } : liveFrame;
    socket.send(frameMessage(this.#pageWatch.page, shownFrame), { binary: true });
    this.#parts.bytesWatch.note();
  }

  /**
   * Whether the viewer sees the frame without masks. What a person did in a hand-off is not shown to a viewer who takes
   * control afterwards.
   */
  #seesUnmasked({ isCovered }: LiveFrame): boolean {
    return this.#mayDrive && (!isCovered || this.#control?.wasRequested === true);
  }

  /** Called when control has changed. The last frame is sent again, with or without masks. */
  #resendLastFrame(): void {
    const lastFrame = this.#lastSentFrame;
    if (
      !lastFrame ||
      lastFrame.isUnmasked === this.#seesUnmasked(lastFrame.liveFrame) ||
      lastFrame.liveFrame.jpeg === lastFrame.liveFrame.unmasked
    )
      return;
    this.#waitingFrame ??= lastFrame.liveFrame;
    this.#sendFrame();
  }

  // ---- control ------------------------------------------------------------------------------------------------------

  /**
   * Takes control. Ignored while the viewer has control or is taking it, so that the fence that was sent to the viewer
   * remains valid.
   */
  async #takeControl(): Promise<void> {
    const { lease, viewing, claims } = this.#parts;
    if (claims.right !== 'control')
      return this.#refuse('take', 'This link is view-only. It does not allow taking control.');
    if (this.#isTakingControl || (this.#control && lease.isFresh(this.#control.fence))) return;
    this.#isTakingControl = true;
    const control = claims.lease ? this.#leasedControl : await lease.take(this.#holder).catch(() => undefined);
    this.#isTakingControl = false;
    if (!control) return this.#refuse('take', this.#refusalReason);
    if (this.#closeController.signal.aborted) return;
    this.#control = control;
    this.#resendLastFrame();
    const page = this.#pageWatch && viewing.page(this.#pageWatch.page);
    page?.setControlled(true);
    page?.bringToFront();
    this.#sendControl();
    if (control.isMasked) this.#sendTabs();
    if (this.#pageWatch) this.#sendPage(this.#pageWatch.page);
  }

  /**
   * The control in the hand-off that this address was issued for. Undefined if the fence of the address is not current.
   */
  get #leasedControl(): Control | undefined {
    const { claims, lease } = this.#parts;
    const { control } = lease;
    return control?.handoffId === claims.lease?.handoffId && control?.fence === claims.lease?.fence
      ? control
      : undefined;
  }

  get #refusalReason(): string {
    const { control, wasRequested } = this.#parts.lease;
    if (wasRequested && !control) return 'A hand-off of this session waits for a person. Claim it instead.';
    return control?.wasRequested ? 'A person has control in a hand-off.' : 'Another viewer has control.';
  }

  #onLeaseChange(): void {
    this.#sendControl();
    this.#sendTabs();
    if (this.#parts.claims.lease && !this.#leasedControl) this.end('the hand-off has ended');
  }

  async #releaseControl(fence: number): Promise<void> {
    if (this.#control?.fence !== fence) return;
    await this.#parts.lease.giveBack(fence);
    if (this.#control?.fence === fence) this.#dropControl();
  }

  get #mayDrive(): boolean {
    return this.#control !== undefined && this.#parts.lease.isFresh(this.#control.fence);
  }

  #dropControl(): void {
    this.#control = undefined;
    this.#resendLastFrame();
    if (this.#pageWatch) this.#parts.viewing.page(this.#pageWatch.page)?.setControlled(false);
  }

  async #renew(): Promise<void> {
    const { clock, lease } = this.#parts;
    while (!this.#closeController.signal.aborted) {
      await clock.sleep(RENEW_INTERVAL_MS, this.#closeController.signal).catch(() => {});
      const control = this.#control;
      // Control in a requested hand-off is renewed by the person's own browser, so that the control ends when its tab
      // is suspended.
      if (!control || control.wasRequested || this.#closeController.signal.aborted) continue;
      // The database may be briefly unavailable. The lease lasts until the next attempt.
      const isRenewed = await lease.renewTakenControl(control).catch(() => lease.isFresh(control.fence));
      if (!isRenewed && this.#control === control) this.#sendControl();
    }
  }

  /** The right is checked here for every message, because the page's own checks can be bypassed. */
  #handleInput(message: DriveMessage): void {
    const { claims, lease, viewing } = this.#parts;
    if (claims.right !== 'control' || !this.#control || this.#control.fence !== message.fence)
      return this.#refuse(message.type, 'You do not have control.');
    if (!lease.isFresh(message.fence)) return this.#refuse(message.type, 'Your control has ended.');
    if (message.type === 'newTab') return void this.#openTab().catch(this.#onFailed);
    if (claims.page !== undefined && message.page !== claims.page)
      return this.#refuse(message.type, 'This link allows input to only one page, and this is another page.');
    const page = viewing.page(message.page);
    if (page) this.#dispatch(page, message);
  }

  #dispatch(page: ViewedPage, message: Exclude<DriveMessage, { type: 'newTab' }>): void {
    switch (message.type) {
      case 'mouse':
        if (message.action === 'move') this.#sendCursor(page, message.x, message.y).catch(this.#onFailed);
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
          .then(text => this.#send({ type: 'copied', text }))
          .catch(this.#onFailed);
      case 'navigate':
        return this.#navigate(page, message.url);
      case 'history':
        return void page.traverseHistory(message.action).catch(() => {});
      case 'dialog':
        return page.answerDialog(message.accept, message.text);
      case 'choose':
        return page.choose(message.options);
      case 'files':
        return page.chooseFiles(message.names.filter(isPlainFileName).map(name => UPLOADS_FOLDER + name));
      case 'front':
        return page.bringToFront();
      case 'close':
        return page.closePage();
    }
  }

  #navigate(page: ViewedPage, url: string): void {
    const permittedOrigins = this.#control?.allowedOrigins;
    if (permittedOrigins && !permittedOrigins.includes(URL.parse(url)?.origin ?? ''))
      return this.#refuse(
        'navigate',
        `Only these sites can be opened in this hand-off: ${permittedOrigins.join(', ')}.`,
      );
    if (!page.navigate(url)) this.#refuse('navigate', 'Only http and https addresses can be opened here.');
  }

  // ---- sending ------------------------------------------------------------------------------------------------------

  #onPageChanged(page: string | undefined): void {
    const { viewing } = this.#parts;
    if (page !== undefined) {
      if (page === this.#pageWatch?.page) this.#sendPage(page);
      return this.#sendTabs();
    }
    this.#sendTabs();
    const isStillOpen = this.#pageWatch && viewing.page(this.#pageWatch.page) !== undefined;
    if (!isStillOpen) this.#leaveClosedPage(this.#pageWatch?.page);
  }

  #sendTabs(): void {
    const { viewing, claims } = this.#parts;
    const tabs = viewing.tabs.filter(tab => claims.page === undefined || tab.page === claims.page);
    this.#send({ type: 'tabs', tabs: this.#seesTitles ? tabs : tabs.map(tab => ({ ...tab, title: '' })) });
    for (const tab of tabs) this.#sendIcon(tab);
  }

  /**
   * Whether the viewer sees titles. In a masked hand-off, the title of a page may contain text that the person typed.
   */
  get #seesTitles(): boolean {
    return this.#parts.lease.control?.isMasked !== true || this.#mayDrive;
  }

  #sendIcon(tab: TabState): void {
    const url = tab.faviconUrl;
    const data = this.#sentIcons.has(url) ? undefined : this.#parts.viewing.iconOf(tab);
    if (data === undefined) return;
    this.#sentIcons.add(url);
    this.#send({ type: 'icon', url, data });
  }

  #sendPage(id: string): void {
    const page = this.#parts.viewing.page(id);
    if (!page) return;
    const { visible: _, dialog, select, files, ...state } = page.state;
    const questions = this.#mayDrive ? { dialog: dialog && this.#dialogOf(dialog), select, files } : NO_QUESTIONS;
    this.#send({ type: 'page', page: id, ...state, ...questions });
  }

  /**
   * If the dialog opened in a masked hand-off, its text is hidden from a viewer who takes control afterwards, as with
   * frames.
   */
  #dialogOf({ isCovered, ...dialog }: OpenDialog): DialogState {
    return isCovered && this.#control?.wasRequested !== true ? { ...dialog, message: '', answer: '' } : dialog;
  }

  #sendControl(): void {
    const { control } = this.#parts.lease;
    if (this.#control && control?.fence !== this.#control.fence) this.#dropControl();
    const controller = !control ? 'agent' : this.#control ? 'you' : 'other';
    this.#send({ type: 'control', who: controller, fence: this.#control?.fence ?? 0 });
  }

  async #sendCursor(page: ViewedPage, x: number, y: number): Promise<void> {
    const cursor = await page.cursor(x, y, this.#parts.clock.monotonicMs());
    if (cursor !== undefined) this.#send({ type: 'cursor', cursor });
  }

  #refuse(refusedAction: string, explanation: string): void {
    this.#send({ type: 'refused', what: refusedAction, why: explanation });
  }

  #send(message: ServerMessage): void {
    const { socket } = this.#parts;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > UNREAD_BYTES_MAX) return socket.terminate();
    socket.send(JSON.stringify(message));
    this.#parts.bytesWatch.note();
  }

  // ---- the connection -----------------------------------------------------------------------------------------------

  #onActivity(): void {
    this.#lastByteMs = this.#parts.clock.monotonicMs();
  }

  async #pingUntilClosed(): Promise<void> {
    const { socket, clock } = this.#parts;
    while (!this.#closeController.signal.aborted) {
      await clock.sleep(PING_INTERVAL_MS, this.#closeController.signal).catch(() => {});
      if (this.#closeController.signal.aborted) return;
      if (clock.monotonicMs() - this.#lastByteMs > SILENCE_TIMEOUT_MS) return socket.terminate();
      socket.ping();
    }
  }

  /** The viewer keeps control until the lease expires, so that the viewer can reconnect. */
  #onClose(): void {
    this.#closeController.abort(new Error('the viewer has disconnected'));
    this.#stopWatching();
    for (const one of this.#closeables) void one.close();
  }
}

const isPlainFileName = (name: string): boolean => !/[/\0]/.test(name) && name !== '.' && name !== '..';
