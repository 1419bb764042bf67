// One page in the live view: its state for viewers, and the input that viewers send. Input uses the server's own CDP
// channel, so that the handles, focus and emulation of CDP clients are not affected.

import type { DialogState, DriveMessage, SelectState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import { boundedText } from '../../kit/foreign.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { chooseOptions, cursorAt, type FoundSelect, focusSelect, readCopiedText } from './page-queries.ts';
import { PageWorlds } from './page-worlds.ts';

const DISPATCH_MOUSE_EVENT = 'Input.dispatchMouseEvent';

type Input<Type extends DriveMessage['type']> = Extract<DriveMessage, { type: Type }>;

/** A page that hangs or shows a dialog must not delay the next click for longer than this. */
const MOUSE_RESPONSE_TIMEOUT_MS = 1_000;
/**
 * Maximum number of queued inputs per page. Further inputs are dropped: a page with this many queued inputs hangs, and
 * the viewer does not expect further inputs to take effect.
 */
const QUEUED_INPUTS_MAX = 1_000;
const CURSOR_INTERVAL_MS = 100;
const COPY_TIMEOUT_MS = 3_000;
/** Maximum length of a dialog's message, and of its default text. */
const DIALOG_CHARS_MAX = 10_000;
const NAVIGABLE_URL_PATTERN = /^(https?:\/\/|about:blank$)/i;

export interface OpenDialog extends DialogState {
  /** Whether the dialog opened in a masked hand-off. If so, its text may repeat text that the person typed. */
  readonly isCovered: boolean;
}

export interface PageState {
  readonly canGoBack: boolean;
  readonly canGoForward: boolean;
  readonly loading: boolean;
  readonly visible: boolean;
  readonly dialog: OpenDialog | null;
  readonly select: SelectState | null;
  readonly files: 'one' | 'many' | null;
}

const INITIAL_STATE: PageState = {
  ...{ canGoBack: false, canGoForward: false, loading: false, visible: true },
  ...{ dialog: null, select: null, files: null },
};

export interface ViewedPageParts {
  readonly target: ObservedTarget;
  /** The frames of the page that run in their own process. */
  readonly remoteFrames: () => ReadonlyMap<string, ObservedTarget>;
  /** Whether the session is in a masked hand-off. */
  readonly isCovered: () => boolean;
  readonly onChanged: () => void;
  /** Called with each CDP command that may type text or begin another field, in the order of the input. */
  readonly onTyping: (method: string, params: JsonObject) => void;
}

interface QueuedStep {
  readonly run: () => Promise<void> | void;
  /** Called instead of `run` if control is given back before the step runs. A step without `drop` runs anyway. */
  readonly drop?: () => void;
}

export class ViewedPage implements Closeable {
  readonly id: string;
  readonly #target: ObservedTarget;
  readonly #worlds: PageWorlds;
  readonly #isCovered: () => boolean;
  readonly #onChanged: () => void;
  readonly #onTyping: ViewedPageParts['onTyping'];
  readonly #subscription: Closeable;
  #state: PageState = INITIAL_STATE;
  #select: FoundSelect | undefined;
  #fileInputNodeId: number | undefined;
  /** Pending until the page has acknowledged the last mouse move. */
  #pendingMove: Promise<void> | undefined;
  #nextMove: JsonObject | undefined;
  #cursorQueriedMs = 0;
  /** Steps queued behind the one that is running. Undefined if no step is running. */
  #queuedSteps: QueuedStep[] | undefined;
  /** The newest move with the left button pressed. */
  #latestDragMove: JsonObject | undefined;
  /** Whether the mouse-down opened the list of a `select` element. If so, the page must not get the mouse-up. */
  #isReleaseIgnored = false;
  /** The number of times that a viewer has given back control or left the page. */
  #controlEndCount = 0;

  constructor({ target, remoteFrames, isCovered, onChanged, onTyping }: ViewedPageParts) {
    this.id = target.id;
    this.#target = target;
    this.#worlds = new PageWorlds(target, remoteFrames);
    this.#isCovered = isCovered;
    this.#onChanged = onChanged;
    this.#onTyping = onTyping;
    this.#subscription = target.on((method, params) => this.#handleEvent(method, params));
    target.post('Page.enable');
    void this.#readHistory();
  }

  get state(): PageState {
    return this.#state;
  }

  close(): void {
    void this.#subscription.close();
  }

  /** Resolves when all input so far has been sent to the browser or dropped. */
  async whenInputSent(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    // This step has no `drop`. If control is given back while another step is running, that step still sends its input,
    // and this method must wait for it.
    if (this.#enqueue({ run: resolve })) await promise;
    await this.#pendingMove;
  }

  /**
   * Called when a viewer takes or gives back control. While a viewer has control, file choosers are intercepted and
   * shown to the viewer.
   */
  setControlled(isControlled: boolean): void {
    this.#target.post('Page.setInterceptFileChooserDialog', { enabled: isControlled });
    if (isControlled) return;
    this.#controlEndCount++;
    this.#isReleaseIgnored = false;
    this.#select = undefined;
    this.#fileInputNodeId = undefined;
    // Drops the input that is still queued, because the agent has control again.
    for (const step of this.#queuedSteps?.splice(0) ?? [])
      if (step.drop) step.drop();
      else this.#enqueue(step);
    this.#nextMove = undefined;
    this.#update({ select: null, files: null });
  }

  bringToFront(): void {
    this.#target.post('Page.bringToFront');
  }

  closePage(): void {
    this.#target.post('Page.close');
  }

  mouse({ action, x, y, button, buttons, clicks, modifiers }: Input<'mouse'>): void {
    const type = { move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased' }[action];
    const event = { type, x, y, button, buttons, clickCount: clicks, modifiers };
    // Moves are also queued, because a move that is sent before the mouse-down would drag nothing.
    this.#enqueueInput(() => {
      if (action === 'move') return this.#move(event);
      this.#onTyping(DISPATCH_MOUSE_EVENT, event);
      // Send the pending move first, so that the button event happens where the viewer sees the mouse.
      if (button === 'left') return action === 'down' ? this.#press(event) : this.#release(event);
      this.#flushMove();
      this.#target.post(DISPATCH_MOUSE_EVENT, event);
    });
  }

  wheel({ x, y, deltaX, deltaY, modifiers }: Input<'wheel'>): void {
    this.#sendInput(DISPATCH_MOUSE_EVENT, { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers });
  }

  touch({ action, points, modifiers }: Input<'touch'>): void {
    const type = { start: 'touchStart', move: 'touchMove', end: 'touchEnd', cancel: 'touchCancel' }[action];
    this.#sendInput('Input.dispatchTouchEvent', { type, touchPoints: points.map(point => ({ ...point })), modifiers });
  }

  key({ action, key, code, keyCode, text, location, repeats, modifiers, mac }: Input<'key'>): void {
    const isTyping = action === 'down' && text !== '';
    this.#sendInput('Input.dispatchKeyEvent', {
      type: action === 'up' ? 'keyUp' : isTyping ? 'keyDown' : 'rawKeyDown',
      ...{ key, code, location, modifiers, windowsVirtualKeyCode: keyCode, autoRepeat: repeats },
      ...(isTyping ? { text, unmodifiedText: text } : {}),
      commands: action === 'down' ? commandsOf(key, modifiers, mac) : [],
    });
  }

  text(text: string): void {
    this.#sendInput('Input.insertText', { text });
  }

  compose({ text, start, end }: Input<'compose'>): void {
    this.#sendInput('Input.imeSetComposition', { text, selectionStart: start, selectionEnd: end });
  }

  /**
   * Returns the selected text for the viewer's clipboard. The page gets the usual copy or cut event. If control is
   * given back before the queued copy runs, the text is empty, and the page gets no event.
   */
  async copy(isCut: boolean): Promise<string> {
    // Queued behind earlier input, which may still change the selection.
    const { promise: turnPromise, resolve } = Promise.withResolvers<boolean>();
    if (!this.#enqueue({ run: () => resolve(true), drop: () => resolve(false) })) return '';
    if (!(await turnPromise)) return '';
    const key = isCut ? 'x' : 'c';
    const event = {
      key,
      code: `Key${key.toUpperCase()}`,
      modifiers: 2,
      windowsVirtualKeyCode: key.toUpperCase().charCodeAt(0),
    };
    const keyDownEvent = { type: 'rawKeyDown', ...event, commands: [isCut ? 'cut' : 'copy'] };
    if (isCut) this.#onTyping('Input.dispatchKeyEvent', keyDownEvent);
    const text = await readCopiedText(this.#worlds, () =>
      this.#target.send('Input.dispatchKeyEvent', keyDownEvent, COPY_TIMEOUT_MS).catch(() => {}),
    );
    this.#sendInput('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    return text;
  }

  /** Opens a URL. Returns false if viewers may not open it. */
  navigate(url: string): boolean {
    if (!NAVIGABLE_URL_PATTERN.test(url)) return false;
    this.#target.post('Page.navigate', { url });
    return true;
  }

  async traverseHistory(action: Input<'history'>['action']): Promise<void> {
    if (action === 'reload') return this.#target.post('Page.reload');
    if (action === 'stop') return this.#target.post('Page.stopLoading');
    const { currentIndex, entries } = await this.#target.send('Page.getNavigationHistory');
    const index = numberOf(currentIndex) + (action === 'back' ? -1 : 1);
    const historyEntry = Array.isArray(entries) ? Object(entries[index]) : {};
    if (typeof historyEntry.id === 'number')
      this.#target.post('Page.navigateToHistoryEntry', { entryId: historyEntry.id });
  }

  answerDialog(accept: boolean, promptText: string): void {
    const params = { accept, promptText };
    const isDefaultAnswer = promptText === this.#state.dialog?.answer;
    this.#target.post('Page.handleJavaScriptDialog', params);
    if (!isDefaultAnswer) this.#onTyping('Page.handleJavaScriptDialog', params);
  }

  choose(options: readonly number[]): void {
    const select = this.#select;
    this.#select = undefined;
    this.#update({ select: null });
    if (select) chooseOptions(this.#worlds, select, options).catch(() => {}); // Fails if the page has navigated.
  }

  /** Chooses files by their paths inside the box. `paths` is empty if the viewer cancelled. */
  chooseFiles(paths: readonly string[]): void {
    const nodeId = this.#fileInputNodeId;
    this.#fileInputNodeId = undefined;
    this.#update({ files: null });
    if (nodeId !== undefined && paths.length > 0)
      this.#target.post('DOM.setFileInputFiles', { files: [...paths], backendNodeId: nodeId });
  }

  /** The CSS cursor at a point. Undefined if the last query was less than CURSOR_INTERVAL_MS ago. */
  async cursor(x: number, y: number, nowMs: number): Promise<string | undefined> {
    if (nowMs - this.#cursorQueriedMs < CURSOR_INTERVAL_MS) return undefined;
    this.#cursorQueriedMs = nowMs;
    return cursorAt(this.#worlds, x, y);
  }

  /**
   * Handles a mouse-down of the left button. Screencast frames do not contain the popup list of a `select` element, so
   * a mouse-down on such an element opens a list in the live view instead.
   */
  async #press(event: JsonObject): Promise<void> {
    this.#flushMove();
    this.#latestDragMove = undefined;
    const controlEndCount = this.#controlEndCount;
    const foundSelect = await focusSelect(this.#worlds, Number(event.x), Number(event.y));
    if (foundSelect) {
      if (controlEndCount !== this.#controlEndCount) return; // The viewer no longer has control.
      this.#select = foundSelect;
      this.#isReleaseIgnored = true;
      this.#update({ select: foundSelect.state });
    } else await this.#sendAndWait(event);
  }

  /**
   * Handles a mouse-up of the left button. Chromium starts a drag after the page has handled the mouse-down and the
   * moves, and drops only at a point to which the mouse has been moved twice. A mouse-up that is sent too early ends
   * the drag without a drop.
   */
  async #release(event: JsonObject): Promise<void> {
    if (this.#isReleaseIgnored) {
      this.#isReleaseIgnored = false;
      return;
    }
    const dragMove = this.#latestDragMove;
    this.#latestDragMove = undefined;
    if (dragMove) {
      await this.#pendingMove;
      await this.#sendAndWait(dragMove);
    }
    this.#target.post(DISPATCH_MOUSE_EVENT, event);
  }

  /** Sends a move. At most one move is unacknowledged. Of the moves that arrive meanwhile, only the newest is sent. */
  #move(event: JsonObject): void {
    if (event.button === 'left') this.#latestDragMove = event;
    this.#nextMove = event;
    this.#pendingMove ??= this.#sendMoves().finally(() => {
      this.#pendingMove = undefined;
    });
  }

  async #sendMoves(): Promise<void> {
    for (let next = this.#takeMove(); next; next = this.#takeMove()) await this.#sendAndWait(next);
  }

  #takeMove(): JsonObject | undefined {
    const next = this.#nextMove;
    this.#nextMove = undefined;
    return next;
  }

  #flushMove(): void {
    const next = this.#takeMove();
    if (next) this.#target.post(DISPATCH_MOUSE_EVENT, next);
  }

  async #sendAndWait(event: JsonObject): Promise<void> {
    await this.#target.send(DISPATCH_MOUSE_EVENT, event, MOUSE_RESPONSE_TIMEOUT_MS).catch(() => {});
  }

  /**
   * Sends input without waiting for the response: a click that opens a dialog is acknowledged only when the dialog is
   * closed.
   */
  #sendInput(method: string, params: JsonObject): void {
    this.#enqueueInput(() => {
      this.#target.post(method, params);
      this.#onTyping(method, params);
    });
  }

  #enqueueInput(run: QueuedStep['run']): void {
    this.#enqueue({ run, drop: () => {} });
  }

  /** Runs the step at once, or after the steps that are queued. False if the queue is full. */
  #enqueue(step: QueuedStep): boolean {
    if (!this.#queuedSteps) void this.#runSteps(step);
    else if (this.#queuedSteps.length < QUEUED_INPUTS_MAX) this.#queuedSteps.push(step);
    else return false;
    return true;
  }

  async #runSteps(firstStep: QueuedStep): Promise<void> {
    const queuedSteps: QueuedStep[] = [];
    for (let step: QueuedStep | undefined = firstStep; step; step = queuedSteps.shift()) {
      try {
        const pendingStep = step.run();
        if (!pendingStep) continue;
        this.#queuedSteps = queuedSteps;
        await pendingStep;
      } catch {} // Later steps are still run.
    }
    this.#queuedSteps = undefined;
  }

  #handleEvent(method: string, params: JsonObject): void {
    switch (method) {
      case 'Page.javascriptDialogOpening':
        return this.#update({ dialog: { ...dialogOf(params), isCovered: this.#isCovered() } });
      case 'Page.javascriptDialogClosed':
        return this.#update({ dialog: null });
      case 'Page.screencastVisibilityChanged':
        return this.#update({ visible: params.visible === true });
      case 'Page.fileChooserOpened':
        if (typeof params.backendNodeId !== 'number') return;
        this.#fileInputNodeId = params.backendNodeId;
        return this.#update({ files: params.mode === 'selectMultiple' ? 'many' : 'one' });
      case 'Page.frameStartedLoading':
        return this.#update({ loading: true });
      case 'Page.frameStoppedLoading':
        this.#update({ loading: false });
        return void this.#readHistory();
      case 'Page.frameNavigated':
      case 'Page.navigatedWithinDocument':
        return void this.#readHistory();
    }
  }

  async #readHistory(): Promise<void> {
    const history = await this.#target.send('Page.getNavigationHistory').catch(() => undefined);
    const entryCount = Array.isArray(history?.entries) ? history.entries.length : 0;
    const index = numberOf(history?.currentIndex);
    this.#update({ canGoBack: index > 0, canGoForward: index < entryCount - 1 });
  }

  #update(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#onChanged();
  }
}

function dialogOf({ type, message, defaultPrompt }: JsonObject): DialogState {
  const kinds = ['alert', 'confirm', 'prompt', 'beforeunload'] as const;
  return {
    kind: kinds.find(kind => kind === type) ?? 'alert',
    message: textOf(message),
    answer: textOf(defaultPrompt),
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? boundedText(value, DIALOG_CHARS_MAX) : '');

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

const EDITING_COMMANDS: Readonly<Record<string, string>> = {
  a: 'selectAll',
  c: 'copy',
  v: 'paste',
  x: 'cut',
  z: 'undo',
  y: 'redo',
};
const [CTRL, META, SHIFT] = [2, 4, 8];

/**
 * Returns the editing commands for a key. Without a window system, Chromium does not derive them from keys, so they are
 * sent with the key.
 */
function commandsOf(key: string, modifiers: number, mac: boolean): string[] {
  const isShortcut = (modifiers & ~SHIFT) === (mac ? META : CTRL);
  if (!isShortcut) return [];
  if (key.toLowerCase() === 'z' && modifiers & SHIFT) return ['redo'];
  const command = EDITING_COMMANDS[key.toLowerCase()];
  return command ? [command] : [];
}
