// Converts the viewer's mouse, wheel, touch and key events to messages. A hidden text field has the focus, so that
// compositions, dead keys, pasted text and on-screen keyboards produce text.
import type { DriveMessage } from '../../contract/live-messages.ts';
import type { FrameView } from './frame-view.ts';
import { parts } from './parts.ts';

/** An input message without `fence` and `page`, which are part of every input message. */
export type InputMessage = DriveMessage extends infer One
  ? One extends DriveMessage
    ? Omit<One, 'fence' | 'page'>
    : never
  : never;
export type SendInput = (message: InputMessage) => void;

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'] as const;
/** The key that moves the focus out of the page to the buttons. In other programs, F6 moves the focus between panes. */
export const EXIT_KEY = 'F6';
const IS_MAC = /Mac|iP(hone|ad|od)/.test(navigator.platform);
/** Content of the hidden text field, so that an on-screen keyboard has something to delete. */
const PLACEHOLDER = '\u200b\u200b';
/** Pixels per unit of a wheel event, by `deltaMode`: pixels, lines, pages. The values are those of Chromium. */
const PIXELS_PER_WHEEL_UNIT = [1, 40, 800] as const;

export class Input {
  readonly #sendInput: SendInput;
  readonly #view: FrameView;
  readonly #hasControl: () => boolean;
  #pendingMove: { event: PointerEvent } | undefined;
  #hasComposition = false;
  /**
   * Keys whose key-down was sent to the page. A key-up is sent only for these; other keys were pressed while the focus
   * was elsewhere.
   */
  readonly #pressedKeys = new Map<string, KeyboardEvent>();

  constructor(view: FrameView, hasControl: () => boolean, send: SendInput) {
    this.#view = view;
    this.#hasControl = hasControl;
    this.#sendInput = send;
    this.#listenToPointer();
    this.#listenToKeys();
    parts.keyField.value = PLACEHOLDER;
  }

  focus(): void {
    parts.keyField.focus({ preventScroll: true });
  }

  // ---- mouse, touch ----------------------------------------------------------------------------------------------------

  #listenToPointer(): void {
    const { canvas } = parts;
    const addListener = <K extends keyof HTMLElementEventMap>(
      type: K,
      listener: (event: HTMLElementEventMap[K]) => void,
    ): void =>
      canvas.addEventListener(
        type,
        event => {
          if (!this.#hasControl()) return;
          if (event.cancelable) event.preventDefault();
          listener(event);
        },
        { passive: false },
      );
    addListener('pointerdown', event => this.#onPointer('down', event));
    addListener('pointerup', event => this.#onPointer('up', event));
    addListener('pointermove', event => this.#onMove(event));
    addListener('pointercancel', event => this.#onPointer('up', event));
    addListener('contextmenu', () => {});
    addListener('auxclick', () => {});
    addListener('wheel', event => this.#onWheel(event));
    addListener('touchstart', event => this.#onTouch('start', event));
    addListener('touchmove', event => this.#onTouch('move', event));
    addListener('touchend', event => this.#onTouch('end', event));
    addListener('touchcancel', event => this.#onTouch('cancel', event));
  }

  #onPointer(action: 'down' | 'up', event: PointerEvent): void {
    if (event.pointerType === 'touch') return;
    this.#flushMove();
    if (action === 'down') {
      parts.canvas.setPointerCapture(event.pointerId);
      this.focus();
    }
    this.#sendMouse(action, event, BUTTONS[event.button] ?? 'left');
  }

  /** Sends at most one move per animation frame. */
  #onMove(event: PointerEvent): void {
    if (event.pointerType === 'touch') return;
    const isFirst = this.#pendingMove === undefined;
    this.#pendingMove = { event };
    if (isFirst) requestAnimationFrame(() => this.#flushMove());
  }

  #flushMove(): void {
    const move = this.#pendingMove;
    this.#pendingMove = undefined;
    // The message names the mouse button that is down, because Chromium starts a drag only if a move names a button.
    if (move && this.#hasControl()) this.#sendMouse('move', move.event, heldButton(move.event.buttons));
  }

  #sendMouse(action: 'move' | 'down' | 'up', event: PointerEvent, button: 'none' | (typeof BUTTONS)[number]): void {
    const clicks = action === 'move' ? 0 : this.#clicksOf(action, event);
    this.#sendInput({
      type: 'mouse',
      ...{ action, button, clicks, buttons: event.buttons },
      ...{ ...this.#view.pointOf(event), modifiers: modifiersOf(event) },
    });
  }

  #lastClick = { time: Number.NEGATIVE_INFINITY, x: 0, y: 0, button: -1, clicks: 0 };

  /** Counts clicks, because pointer events do not. */
  #clicksOf(action: 'down' | 'up', { timeStamp, clientX, clientY, button }: PointerEvent): number {
    const previousClick = this.#lastClick;
    if (action === 'up') return previousClick.clicks;
    const isNear =
      Math.hypot(clientX - previousClick.x, clientY - previousClick.y) < 5 &&
      timeStamp - previousClick.time < 500 &&
      previousClick.button === button;
    this.#lastClick = {
      time: timeStamp,
      x: clientX,
      y: clientY,
      button,
      clicks: isNear ? Math.min(3, previousClick.clicks + 1) : 1,
    };
    return this.#lastClick.clicks;
  }

  #onWheel(event: WheelEvent): void {
    const unit = PIXELS_PER_WHEEL_UNIT[event.deltaMode] ?? 1;
    const deltas = { deltaX: event.deltaX * unit, deltaY: event.deltaY * unit };
    this.#sendInput({ type: 'wheel', ...this.#view.pointOf(event), ...deltas, modifiers: modifiersOf(event) });
  }

  #onTouch(action: 'start' | 'move' | 'end' | 'cancel', event: TouchEvent): void {
    const points = [...event.touches]
      .slice(0, 10)
      .map(touch => ({ id: touch.identifier, ...this.#view.pointOf(touch) }));
    this.#sendInput({ type: 'touch', action, points, modifiers: modifiersOf(event) });
  }

  // ---- keys ------------------------------------------------------------------------------------------------------------

  #listenToKeys(): void {
    const { keyField } = parts;
    keyField.addEventListener('keydown', event => this.#onKey('down', event));
    keyField.addEventListener('keyup', event => this.#onKey('up', event));
    keyField.addEventListener('compositionstart', () => {
      this.#hasComposition = true;
    });
    keyField.addEventListener('compositionupdate', ({ data }) => {
      if (this.#hasControl()) this.#sendInput({ type: 'compose', text: data, start: data.length, end: data.length });
    });
    keyField.addEventListener('compositionend', ({ data }) => {
      this.#hasComposition = false;
      if (this.#hasControl())
        this.#sendInput(data === '' ? { type: 'compose', text: '', start: 0, end: 0 } : { type: 'text', text: data });
      this.#resetKeyField();
    });
    keyField.addEventListener('input', event => this.#onTextInput(event));
    keyField.addEventListener('paste', event => {
      event.preventDefault();
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (this.#hasControl() && text !== '') this.#sendInput({ type: 'text', text });
    });
    // If a key is down when the focus is lost, this field gets no key-up event for it, so the key-up is sent to the
    // page now.
    keyField.addEventListener('blur', () => this.#releaseAll());
    keyField.addEventListener('copy', event => event.preventDefault());
    keyField.addEventListener('cut', event => event.preventDefault());
  }

  #onKey(action: 'down' | 'up', event: KeyboardEvent): void {
    // Input from compositions and on-screen keyboards arrives as text.
    if (
      !this.#hasControl() ||
      event.isComposing ||
      this.#hasComposition ||
      event.keyCode === 229 ||
      event.key === 'Dead'
    )
      return;
    if (event.key === EXIT_KEY) return this.#moveFocusOut(action, event);
    const isShortcut = (IS_MAC ? event.metaKey : event.ctrlKey) && !event.altKey;
    const letter = event.key.toLowerCase();
    if (isShortcut && letter === 'v') return; // the paste event has the text
    event.preventDefault();
    if (isShortcut && (letter === 'c' || letter === 'x')) {
      if (action === 'down' && !event.repeat) this.#sendInput({ type: 'copy', cut: letter === 'x' });
      return;
    }
    const name = event.code || event.key;
    if (action === 'down') this.#pressedKeys.set(name, event);
    else if (!this.#pressedKeys.delete(name)) return;
    this.#sendKey(action, event, !isShortcut && !event.metaKey && [...event.key].length === 1);
  }

  #sendKey(action: 'down' | 'up', event: KeyboardEvent, typesCharacter: boolean): void {
    this.#sendInput({
      type: 'key',
      ...{ action, key: event.key, code: event.code, keyCode: event.keyCode, location: event.location },
      ...{ text: action === 'down' ? textOf(event, typesCharacter) : '', repeats: action === 'down' && event.repeat },
      ...{ modifiers: modifiersOf(event, typesCharacter), mac: IS_MAC },
    });
  }

  #releaseAll(): void {
    const pressedKeyEvents = [...this.#pressedKeys.values()];
    this.#pressedKeys.clear();
    if (this.#hasControl()) for (const event of pressedKeyEvents) this.#sendKey('up', event, false);
  }

  /**
   * All other keys, even Tab and Escape, are sent to the page, so one key must move the focus out of the page (WCAG
   * 2.1.2).
   */
  #moveFocusOut(action: 'down' | 'up', event: KeyboardEvent): void {
    event.preventDefault();
    if (action === 'down') parts.control.focus();
  }

  #onTextInput(event: Event): void {
    if (!(event instanceof InputEvent) || event.isComposing || !this.#hasControl()) return;
    if (event.inputType === 'insertText' && event.data) this.#sendInput({ type: 'text', text: event.data });
    else if (event.inputType === 'insertLineBreak') this.#sendKeyPress('Enter', 13, '\r');
    else if (event.inputType === 'deleteContentBackward') this.#sendKeyPress('Backspace', 8, '');
    this.#resetKeyField();
  }

  #sendKeyPress(key: string, keyCode: number, text: string): void {
    const common = { key, code: key, keyCode, location: 0, repeats: false, modifiers: 0, mac: IS_MAC };
    this.#sendInput({ type: 'key', action: 'down', text, ...common });
    this.#sendInput({ type: 'key', action: 'up', text: '', ...common });
  }

  #resetKeyField(): void {
    parts.keyField.value = PLACEHOLDER;
    parts.keyField.setSelectionRange(PLACEHOLDER.length, PLACEHOLDER.length);
  }
}

const heldButton = (buttons: number): 'none' | 'left' | 'middle' | 'right' =>
  buttons & 1 ? 'left' : buttons & 2 ? 'right' : buttons & 4 ? 'middle' : 'none';

const textOf = (event: KeyboardEvent, typesCharacter: boolean): string =>
  event.key === 'Enter' ? '\r' : typesCharacter ? event.key : '';

interface ModifierState {
  readonly altKey: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  getModifierState?(name: string): boolean;
}

/** With AltGr, or Option on a Mac, keys type characters, so these modifiers are not sent. */
function modifiersOf(event: ModifierState, typesCharacter = false): number {
  const isThirdLevel =
    typesCharacter &&
    (event.getModifierState?.('AltGraph') || (event.ctrlKey && event.altKey) || (IS_MAC && event.altKey));
  const [hasAlt, hasCtrl] = isThirdLevel ? [false, false] : [event.altKey, event.ctrlKey];
  return Number(hasAlt) + 2 * Number(hasCtrl) + 4 * Number(event.metaKey) + 8 * Number(event.shiftKey);
}
