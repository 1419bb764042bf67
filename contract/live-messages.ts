// Messages between a live view page and the server over a WebSocket. Text messages are JSON as defined below. Binary
// messages from the server are frames: two bytes with the length of the JSON head (`FrameHead`), the head, then the
// JPEG.
import { type Static, type TSchema, Type } from 'typebox';

export const TEXT_CHARACTERS_MAX = 1_000_000;
const COORDINATE_MAX = 100_000;

const PageId = Type.String({ minLength: 1, maxLength: 64 });
const Fence = Type.Integer({ minimum: 0 });
const Coordinate = Type.Number({ minimum: -COORDINATE_MAX, maximum: COORDINATE_MAX });
/** Bit mask of the modifier keys that are pressed, as in CDP: Alt is 1, Ctrl 2, Meta 4, Shift 8. */
const Modifiers = Type.Integer({ minimum: 0, maximum: 15 });
const Text = Type.String({ maxLength: TEXT_CHARACTERS_MAX });
const ShortText = Type.String({ maxLength: 64 });

const messageSchema = <const Name extends string, T extends Record<string, TSchema>>(type: Name, fields: T) =>
  Type.Object({ type: Type.Literal(type), ...fields }, { additionalProperties: false });
const driveMessageSchema = <const Name extends string, T extends Record<string, TSchema>>(type: Name, fields: T) =>
  messageSchema(type, { fence: Fence, page: PageId, ...fields });

/** Messages that any viewer may send. */
export const WatchMessage = Type.Union([
  /** Watch this page. The page is not brought to the front. */
  messageSchema('watch', { page: PageId }),
  /** The newest frame was drawn, so the server may send the next one. */
  messageSchema('drawn', {}),
  messageSchema('take', {}),
  messageSchema('give', { fence: Fence }),
]);

/** Messages that only the viewer in control may send. Each contains the fence under which the viewer has control. */
export const DriveMessage = Type.Union([
  driveMessageSchema('mouse', {
    action: Type.Enum(['move', 'down', 'up']),
    x: Coordinate,
    y: Coordinate,
    button: Type.Enum(['none', 'left', 'middle', 'right', 'back', 'forward']),
    buttons: Type.Integer({ minimum: 0, maximum: 31 }),
    clicks: Type.Integer({ minimum: 0, maximum: 3 }),
    modifiers: Modifiers,
  }),
  driveMessageSchema('wheel', {
    x: Coordinate,
    y: Coordinate,
    deltaX: Coordinate,
    deltaY: Coordinate,
    modifiers: Modifiers,
  }),
  driveMessageSchema('touch', {
    action: Type.Enum(['start', 'move', 'end', 'cancel']),
    points: Type.Array(Type.Object({ id: Type.Integer(), x: Coordinate, y: Coordinate }), { maxItems: 10 }),
    modifiers: Modifiers,
  }),
  driveMessageSchema('key', {
    action: Type.Enum(['down', 'up']),
    key: ShortText,
    code: ShortText,
    keyCode: Type.Integer({ minimum: 0, maximum: 65_535 }),
    /** The text that pressing the key enters, if any. */
    text: ShortText,
    location: Type.Integer({ minimum: 0, maximum: 3 }),
    repeats: Type.Boolean(),
    modifiers: Modifiers,
    /** The viewer uses a Mac, whose shortcuts have Cmd instead of Ctrl. */
    mac: Type.Boolean(),
  }),
  /**
   * Text that is entered without key events: pasted or dictated text, text from an on-screen keyboard, or a finished
   * IME composition.
   */
  driveMessageSchema('text', { text: Text }),
  driveMessageSchema('compose', { text: Text, start: Type.Integer({ minimum: 0 }), end: Type.Integer({ minimum: 0 }) }),
  driveMessageSchema('copy', { cut: Type.Boolean() }),
  driveMessageSchema('navigate', { url: Type.String({ minLength: 1, maxLength: 8192 }) }),
  driveMessageSchema('history', { action: Type.Enum(['back', 'forward', 'reload', 'stop']) }),
  driveMessageSchema('dialog', { accept: Type.Boolean(), text: Text }),
  driveMessageSchema('choose', { options: Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 10_000 }) }),
  driveMessageSchema('files', { names: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 1000 }) }),
  driveMessageSchema('front', {}),
  driveMessageSchema('close', {}),
  messageSchema('newTab', { fence: Fence }),
]);

export const ViewerMessage = Type.Union([WatchMessage, DriveMessage]);
export type WatchMessage = Static<typeof WatchMessage>;
export type DriveMessage = Static<typeof DriveMessage>;
export type ViewerMessage = Static<typeof ViewerMessage>;

// ---- from the server -------------------------------------------------------------------------------------------------

export interface FrameHead {
  readonly page: string;
  /** The size of the shown part of the page, in CSS pixels. */
  readonly width: number;
  readonly height: number;
}

export interface TabState {
  readonly page: string;
  readonly url: string;
  readonly title: string;
  readonly faviconUrl: string;
  /** If false, the page is behind another tab, so its last frame is shown. */
  readonly visible: boolean;
}

export interface DialogState {
  readonly kind: 'alert' | 'confirm' | 'prompt' | 'beforeunload';
  readonly message: string;
  readonly answer: string;
}

export interface SelectState {
  readonly multiple: boolean;
  readonly box: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  readonly options: ReadonlyArray<{
    readonly label: string;
    readonly group: string;
    readonly disabled: boolean;
    readonly chosen: boolean;
  }>;
}

export type ServerMessage =
  | {
      readonly type: 'welcome';
      readonly right: 'view' | 'control';
      readonly holder: string;
      /** Whether DevTools can be opened with this live view address. */
      readonly devtools: boolean;
    }
  | { readonly type: 'tabs'; readonly tabs: readonly TabState[] }
  /** The icon at a `faviconUrl`, as a data URL. Sent once, when the icon has been loaded. */
  | { readonly type: 'icon'; readonly url: string; readonly data: string }
  | {
      readonly type: 'control';
      /**
       * `you`: this viewer has control, and sends input with `fence`. `other`: another viewer has control. `agent`: no
       * viewer has control.
       */
      readonly who: 'you' | 'other' | 'agent';
      readonly fence: number;
    }
  | { readonly type: 'refused'; readonly what: string; readonly why: string }
  | {
      readonly type: 'page';
      readonly page: string;
      readonly canGoBack: boolean;
      readonly canGoForward: boolean;
      readonly loading: boolean;
      /**
       * `dialog`, `select` and `files` are the dialog, drop-down list and file chooser that the page has open. `files`
       * says how many files the chooser accepts. Set only for the viewer in control.
       */
      readonly dialog: DialogState | null;
      readonly select: SelectState | null;
      readonly files: 'one' | 'many' | null;
    }
  /** The viewer in control caused a new page to open, which is now shown. `from` is the page that opened it. */
  | { readonly type: 'opened'; readonly page: string; readonly from: string }
  /** The shown page was closed, and the page that opened it is shown again. */
  | { readonly type: 'returned'; readonly page: string }
  | { readonly type: 'cursor'; readonly cursor: string }
  | { readonly type: 'copied'; readonly text: string }
  /** A page downloaded a file. The viewer in control can save it from `url`. */
  | { readonly type: 'download'; readonly name: string; readonly size: number; readonly url: string }
  | { readonly type: 'ended'; readonly why: string };
