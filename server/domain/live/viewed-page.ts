// One page while people look at the session: what they must be shown besides its picture, and what they do to it. Input goes
// over the server's own channel, so no client's handles, focus or emulation are touched.
import type { DialogState, DriveMessage, SelectState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import { boundedText } from '../../kit/foreign.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { JsonObject } from '../sessions/machinery.ts';
import { askSelect, chooseOptions, cursorAt, type FoundSelect, textTakenBy } from './page-questions.ts';
import { PageWorlds } from './page-worlds.ts';

const MOUSE = 'Input.dispatchMouseEvent';

type Drive<Type extends DriveMessage['type']> = Extract<DriveMessage, { type: Type }>;

/** A page that is stuck, or asks something, must not keep a person waiting for the next click. */
const MOUSE_ANSWER_MS = 1_000;
/** Of one page; what is done to it beyond that is thrown away: it is stuck, and nobody means that much input any more. */
const WAITING_INPUT_MAX = 1_000;
const CURSOR_EVERY_MS = 100;
const COPIED_MS = 3_000;
/** Of what a dialog asks, and of the answer that it proposes. */
const DIALOG_CHARS_MAX = 10_000;
const NAVIGABLE = /^(https?:\/\/|about:blank$)/i;

export interface PageState {
  readonly canGoBack: boolean;
  readonly canGoForward: boolean;
  readonly loading: boolean;
  readonly visible: boolean;
  readonly dialog: DialogState | null;
  readonly select: SelectState | null;
  readonly files: 'one' | 'many' | null;
}

const AT_REST: PageState = {
  ...{ canGoBack: false, canGoForward: false, loading: false, visible: true },
  ...{ dialog: null, select: null, files: null },
};

export class ViewedPage implements Closeable {
  readonly id: string;
  readonly #target: ObservedTarget;
  readonly #worlds: PageWorlds;
  readonly #changed: () => void;
  readonly #listening: Closeable;
  #state: PageState = AT_REST;
  #select: FoundSelect | undefined;
  #chooser: number | undefined;
  /** Until the page has said that it knows where the mouse went. */
  #moved: Promise<void> | undefined;
  #nextMove: JsonObject | undefined;
  #cursorAsked = 0;
  /** What waits for what came before it, of which the first is under way; undefined: nothing is. */
  #waiting: Array<() => Promise<void> | void> | undefined;
  /** The newest move with the left button held. */
  #dragged: JsonObject | undefined;
  /** The press opened our list, so the page must not see the release. */
  #swallowsRelease = false;

  /** `apart`: the frames of it that have processes of their own. */
  constructor(target: ObservedTarget, apart: () => ReadonlyMap<string, ObservedTarget>, changed: () => void) {
    this.id = target.id;
    this.#target = target;
    this.#worlds = new PageWorlds(target, apart);
    this.#changed = changed;
    this.#listening = target.on((method, params) => this.#event(method, params));
    target.say('Page.enable');
    void this.#readHistory();
  }

  get state(): PageState {
    return this.#state;
  }

  close(): void {
    void this.#listening.close();
  }

  /** A person drives from here on, or does no more: choosers of files come to them meanwhile. */
  driven(on: boolean): void {
    this.#target.say('Page.setInterceptFileChooserDialog', { enabled: on });
    if (!on) this.#become({ select: null, files: null });
  }

  toFront(): void {
    this.#target.say('Page.bringToFront');
  }

  closePage(): void {
    this.#target.say('Page.close');
  }

  mouse({ action, x, y, button, buttons, clicks, modifiers }: Drive<'mouse'>): void {
    const type = { move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased' }[action];
    const event = { type, x, y, button, buttons, clickCount: clicks, modifiers };
    // Moves wait too: one that overtook its press would drag nothing.
    this.#inOrder(() => {
      if (action === 'move') return this.#move(event);
      // What was on its way comes first, so that the press lands where the person sees the mouse.
      if (button === 'left') return action === 'down' ? this.#press(event) : this.#release(event);
      this.#flushMove();
      this.#target.say(MOUSE, event);
    });
  }

  wheel({ x, y, deltaX, deltaY, modifiers }: Drive<'wheel'>): void {
    this.#input(MOUSE, { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers });
  }

  touch({ action, points, modifiers }: Drive<'touch'>): void {
    const type = { start: 'touchStart', move: 'touchMove', end: 'touchEnd', cancel: 'touchCancel' }[action];
    this.#input('Input.dispatchTouchEvent', { type, touchPoints: points.map(point => ({ ...point })), modifiers });
  }

  key({ action, key, code, keyCode, text, location, repeats, modifiers, mac }: Drive<'key'>): void {
    const typed = action === 'down' && text !== '';
    this.#input('Input.dispatchKeyEvent', {
      type: action === 'up' ? 'keyUp' : typed ? 'keyDown' : 'rawKeyDown',
      ...{ key, code, location, modifiers, windowsVirtualKeyCode: keyCode, autoRepeat: repeats },
      ...(typed ? { text, unmodifiedText: text } : {}),
      commands: action === 'down' ? commandsOf(key, modifiers, mac) : [],
    });
  }

  text(text: string): void {
    this.#input('Input.insertText', { text });
  }

  compose({ text, start, end }: Drive<'compose'>): void {
    this.#input('Input.imeSetComposition', { text, selectionStart: start, selectionEnd: end });
  }

  /** What is selected, for the person's own clipboard; the page hears of the copy or cut as of any other. */
  async copy(cut: boolean): Promise<string> {
    // Behind what came before: what is selected may only be on its way.
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.#inOrder(resolve)) return '';
    await promise;
    const key = cut ? 'x' : 'c';
    const event = {
      key,
      code: `Key${key.toUpperCase()}`,
      modifiers: 2,
      windowsVirtualKeyCode: key.toUpperCase().charCodeAt(0),
    };
    const pressed = { type: 'rawKeyDown', ...event, commands: [cut ? 'cut' : 'copy'] };
    const text = await textTakenBy(this.#worlds, () =>
      this.#target.send('Input.dispatchKeyEvent', pressed, COPIED_MS).catch(() => {}),
    );
    this.#input('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    return text;
  }

  /** False for what a person may not open here. */
  navigate(url: string): boolean {
    if (!NAVIGABLE.test(url)) return false;
    this.#target.say('Page.navigate', { url });
    return true;
  }

  async history(action: Drive<'history'>['action']): Promise<void> {
    if (action === 'reload') return this.#target.say('Page.reload');
    if (action === 'stop') return this.#target.say('Page.stopLoading');
    const { currentIndex, entries } = await this.#target.send('Page.getNavigationHistory');
    const index = numberOf(currentIndex) + (action === 'back' ? -1 : 1);
    const entry = Array.isArray(entries) ? Object(entries[index]) : {};
    if (typeof entry.id === 'number') this.#target.say('Page.navigateToHistoryEntry', { entryId: entry.id });
  }

  dialog(accept: boolean, promptText: string): void {
    this.#target.say('Page.handleJavaScriptDialog', { accept, promptText });
  }

  choose(options: readonly number[]): void {
    const select = this.#select;
    this.#select = undefined;
    this.#become({ select: null });
    if (select) chooseOptions(this.#worlds, select, options).catch(() => {}); // the page has gone elsewhere
  }

  /** Paths as the browser sees them; none: the person wants no file. */
  files(paths: readonly string[]): void {
    const chooser = this.#chooser;
    this.#chooser = undefined;
    this.#become({ files: null });
    if (chooser !== undefined && paths.length > 0)
      this.#target.say('DOM.setFileInputFiles', { files: [...paths], backendNodeId: chooser });
  }

  /** The shape of the mouse there; undefined when it was asked a moment ago. */
  async cursor(x: number, y: number, nowMs: number): Promise<string | undefined> {
    if (nowMs - this.#cursorAsked < CURSOR_EVERY_MS) return undefined;
    this.#cursorAsked = nowMs;
    return cursorAt(this.#worlds, x, y);
  }

  /** The list of a select never is in the picture, so a press on one opens ours instead. */
  async #press(event: JsonObject): Promise<void> {
    this.#flushMove();
    this.#dragged = undefined;
    const found = await askSelect(this.#worlds, Number(event.x), Number(event.y));
    if (found) {
      this.#select = found;
      this.#swallowsRelease = true;
      this.#become({ select: found.state });
    } else await this.#answered(event);
  }

  /**
   * A browser takes up a drag when the page has seen the press and the moves, and drops what a page has accepted on the
   * place where it was moved twice, as a hand moves it. A release that comes sooner ends the drag, and nothing is dropped.
   */
  async #release(event: JsonObject): Promise<void> {
    if (this.#swallowsRelease) {
      this.#swallowsRelease = false;
      return;
    }
    const dragged = this.#dragged;
    this.#dragged = undefined;
    if (dragged) {
      await this.#moved;
      await this.#answered(dragged);
    }
    this.#target.say(MOUSE, event);
  }

  /** At most one move is on its way; of those that come meanwhile the newest counts. */
  #move(event: JsonObject): void {
    if (event.button === 'left') this.#dragged = event;
    this.#nextMove = event;
    this.#moved ??= this.#sendMoves().finally(() => {
      this.#moved = undefined;
    });
  }

  async #sendMoves(): Promise<void> {
    for (let next = this.#takeMove(); next; next = this.#takeMove()) await this.#answered(next);
  }

  #takeMove(): JsonObject | undefined {
    const next = this.#nextMove;
    this.#nextMove = undefined;
    return next;
  }

  #flushMove(): void {
    const next = this.#takeMove();
    if (next) this.#target.say(MOUSE, next);
  }

  async #answered(event: JsonObject): Promise<void> {
    await this.#target.send(MOUSE, event, MOUSE_ANSWER_MS).catch(() => {});
  }

  /** Nobody waits for the answer: a click that opens a dialog has none until that is answered. */
  #input(method: string, params: JsonObject): void {
    this.#inOrder(() => this.#target.say(method, params));
  }

  /** At once when nothing is under way that what comes later must wait for. False: too much waits already. */
  #inOrder(step: () => Promise<void> | void): boolean {
    if (!this.#waiting) void this.#goThrough(step);
    else if (this.#waiting.length < WAITING_INPUT_MAX) this.#waiting.push(step);
    else return false;
    return true;
  }

  async #goThrough(first: () => Promise<void> | void): Promise<void> {
    const waiting: Array<() => Promise<void> | void> = [];
    for (let step: typeof first | undefined = first; step; step = waiting.shift()) {
      try {
        const done = step();
        if (!done) continue;
        this.#waiting = waiting;
        await done;
      } catch {} // What comes behind it is still done.
    }
    this.#waiting = undefined;
  }

  #event(method: string, params: JsonObject): void {
    switch (method) {
      case 'Page.javascriptDialogOpening':
        return this.#become({ dialog: dialogOf(params) });
      case 'Page.javascriptDialogClosed':
        return this.#become({ dialog: null });
      case 'Page.screencastVisibilityChanged':
        return this.#become({ visible: params.visible === true });
      case 'Page.fileChooserOpened':
        if (typeof params.backendNodeId !== 'number') return;
        this.#chooser = params.backendNodeId;
        return this.#become({ files: params.mode === 'selectMultiple' ? 'many' : 'one' });
      case 'Page.frameStartedLoading':
        return this.#become({ loading: true });
      case 'Page.frameStoppedLoading':
        this.#become({ loading: false });
        return void this.#readHistory();
      case 'Page.frameNavigated':
      case 'Page.navigatedWithinDocument':
        return void this.#readHistory();
    }
  }

  async #readHistory(): Promise<void> {
    const history = await this.#target.send('Page.getNavigationHistory').catch(() => undefined);
    const entries = Array.isArray(history?.entries) ? history.entries.length : 0;
    const index = numberOf(history?.currentIndex);
    this.#become({ canGoBack: index > 0, canGoForward: index < entries - 1 });
  }

  #become(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#changed();
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

const COMMANDS: Readonly<Record<string, string>> = {
  a: 'selectAll',
  c: 'copy',
  v: 'paste',
  x: 'cut',
  z: 'undo',
  y: 'redo',
};
const [CTRL, META, SHIFT] = [2, 4, 8];

/** Chromium takes the editing command beside the key: without a window system nobody else makes one of it. */
function commandsOf(key: string, modifiers: number, mac: boolean): string[] {
  const shortcut = (modifiers & ~SHIFT) === (mac ? META : CTRL);
  if (!shortcut) return [];
  if (key.toLowerCase() === 'z' && modifiers & SHIFT) return ['redo'];
  const command = COMMANDS[key.toLowerCase()];
  return command ? [command] : [];
}
