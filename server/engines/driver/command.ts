// The commands of the driver and their results, as sent between the main thread and the driver's threads.

/** The reference of an element in the newest snapshot of the page, such as `e12`. */
export type Ref = string;

export interface FileContent {
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

export type Modifier = 'Alt' | 'Control' | 'ControlOrMeta' | 'Meta' | 'Shift';

export type Field =
  | { readonly type: 'text' | 'select'; readonly ref: Ref; readonly value: string }
  | { readonly type: 'checkbox'; readonly ref: Ref; readonly checked: boolean };

export type Command =
  | { readonly do: 'navigate'; readonly url: string }
  | { readonly do: 'back' | 'forward' | 'reload' | 'snapshot' | 'requests' }
  | {
      readonly do: 'click';
      readonly ref: Ref;
      readonly double: boolean;
      readonly button: 'left' | 'right' | 'middle';
      readonly modifiers: readonly Modifier[];
    }
  | { readonly do: 'hover'; readonly ref: Ref }
  | { readonly do: 'drag'; readonly from: Ref; readonly to: Ref }
  | {
      readonly do: 'type';
      readonly ref: Ref;
      readonly text: string;
      readonly submit: boolean;
      /** Whether to type key by key, for pages that handle key events. */
      readonly slowly: boolean;
    }
  | { readonly do: 'fill'; readonly fields: readonly Field[] }
  | { readonly do: 'press'; readonly key: string }
  | { readonly do: 'select'; readonly ref: Ref; readonly values: readonly string[] }
  | { readonly do: 'files'; readonly ref?: Ref; readonly files: readonly FileContent[] }
  | {
      readonly do: 'screenshot';
      readonly ref?: Ref;
      readonly fullPage: boolean;
      readonly type: 'png' | 'jpeg';
    }
  | { readonly do: 'wait'; readonly ms?: number; readonly text?: string; readonly textGone?: string }
  | { readonly do: 'tabs'; readonly action: 'list' }
  | { readonly do: 'tabs'; readonly action: 'new'; readonly url?: string }
  | { readonly do: 'tabs'; readonly action: 'select' | 'close'; readonly index?: number }
  | { readonly do: 'dialog'; readonly accept: boolean; readonly text?: string }
  | { readonly do: 'evaluate'; readonly code: string; readonly ref?: Ref }
  | { readonly do: 'console'; readonly errorsOnly: boolean }
  | { readonly do: 'resize'; readonly width: number; readonly height: number }
  | { readonly do: 'capture'; readonly capture: Capture }
  | { readonly do: 'steps'; readonly steps: Steps };

/** What an operation captures from a page. Dialogs that open during the capture are dismissed. */
export interface Capture {
  /** The page to open first. If absent, the current page is used as it is. */
  readonly url?: string;
  /** `load`, `domcontentloaded`, `networkidle` or a selector. */
  readonly waitUntil: string;
  readonly timeoutMs: number;
  readonly acceptStatus: readonly number[];
  readonly wanted: WantedContent;
}

/** The steps that an operation performs in a page. Dialogs that open during the steps are dismissed. */
export interface Steps extends Omit<Capture, 'wanted'> {
  readonly steps: readonly Step[];
  /**
   * A summary of the earlier commands of the same call: the number of their steps, the total size of their files in
   * bytes, and whether any of them contained a `type` step.
   */
  readonly before?: { readonly steps: number; readonly bytes: number; readonly hasTyped: boolean };
}

export type Step =
  | { readonly do: 'goto'; readonly url: string; readonly waitUntil: string }
  | { readonly do: 'waitFor'; readonly selector: string; readonly state: 'visible' | 'hidden' }
  | {
      readonly do: 'click';
      readonly selector: string;
      readonly button: 'left' | 'right' | 'middle';
      readonly double: boolean;
    }
  | { readonly do: 'fill'; readonly selector: string; readonly value: string }
  /** The text is typed outside the driver, which never receives it. */
  | { readonly do: 'type'; readonly selector: string }
  | { readonly do: 'select'; readonly selector: string; readonly values: readonly string[] }
  | { readonly do: 'press'; readonly selector?: string; readonly key: string }
  | { readonly do: 'hover'; readonly selector: string }
  | { readonly do: 'scroll'; readonly selector?: string; readonly x: number; readonly y: number }
  | { readonly do: 'upload'; readonly selector: string; readonly files: readonly FileContent[] }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'take'; readonly wanted: WantedContent };

export interface StepResult extends Omit<CapturedPage, 'url' | 'title' | 'status'> {
  /** `person` stands for a hand-off to a person, which the driver does not perform. */
  readonly do: Step['do'] | 'person';
}

export interface StepsOutcome extends Pick<CapturedPage, 'url' | 'title' | 'status'> {
  /** One result for each step. */
  readonly results: readonly StepResult[];
}

export type WantedContent =
  | {
      readonly kind: 'screenshot';
      readonly fullPage: boolean;
      readonly selector?: string;
      readonly format: 'png' | 'jpeg';
      readonly quality: number;
    }
  | {
      readonly kind: 'pdf';
      readonly paper: string;
      readonly landscape: boolean;
      readonly background: boolean;
      readonly pages?: string;
    }
  | { readonly kind: 'html' | 'text' | 'links'; readonly selector?: string }
  /**
   * Clicks the element. Without a selector, opens the URL, which starts the download. The driver does not receive the
   * file. The code that watches the browser's downloads does.
   */
  | { readonly kind: 'download'; readonly selector?: string }
  | {
      readonly kind: 'fields';
      readonly fields: Readonly<Record<string, { selector: string; attribute?: string; all: boolean }>>;
    };

export interface CapturedPage {
  readonly url: string;
  readonly title: string;
  readonly status?: number;
  readonly bytes?: Uint8Array;
  readonly mimeType?: string;
  readonly width?: number;
  readonly height?: number;
  readonly pages?: number;
  readonly text?: string;
  readonly isTruncated?: boolean;
  readonly values?: Readonly<Record<string, string | null | readonly string[]>>;
}

export interface Tab {
  readonly index: number;
  readonly title: string;
  readonly url: string;
  readonly isCurrent: boolean;
}

export interface PageState {
  readonly url: string;
  readonly title: string;
  /** The accessibility tree as YAML, with a reference for each element. Absent if the command does not need it. */
  readonly snapshot?: string;
  /** Whether the snapshot was cut at its size limit. */
  readonly isTruncated?: boolean;
}

export interface CommandResult {
  readonly text?: string;
  readonly image?: { readonly bytes: Uint8Array; readonly mimeType: string };
  /** Absent while a dialog is open, because it blocks the page. */
  readonly page?: PageState;
  readonly tabs: readonly Tab[];
  /** Describes the open dialog or file chooser that must be answered first. */
  readonly blockedBy?: string;
  /** Set only for `capture`. */
  readonly captured?: CapturedPage;
  /** Set only for `steps`. */
  readonly stepsOutcome?: StepsOutcome;
}

/**
 * The reason why a command failed. `command`: the command is not possible, for the reason in the message. `connection`:
 * there is no connection to the browser, or the session or the service is ending. `too_long`: the command exceeded the
 * time limit of the driver. `too_many`: too many commands of the session are waiting. `died`: the thread of the driver
 * ended. `page`: the page could not be loaded or is an error page. `timeout`: the page was not ready in time.
 * `refused`: the text may not be typed into this page.
 */
export type DriveFailure = 'command' | 'connection' | 'too_long' | 'too_many' | 'died' | 'page' | 'timeout' | 'refused';

export class DriveFailed extends Error {
  override readonly name = 'DriveFailed';
  readonly why: DriveFailure;
  readonly details: Readonly<Record<string, string | number>>;
  constructor(why: DriveFailure, message: string, details: Readonly<Record<string, string | number>> = {}) {
    super(message);
    this.why = why;
    this.details = details;
  }
}

export interface CommandMessage {
  readonly id: number;
  readonly session: string;
  /** The WebSocket address of the session's browser. */
  readonly address: string;
  readonly command: Command;
  readonly limitMs: number;
}

/**
 * A message from a driver thread to the main thread. `id`: the id of the command that has succeeded or failed.
 * `helpId`: the id of a request for help. `commandId`: the id of the command that needs the help. `closed`: the session
 * whose connection to the browser has been closed.
 */
export type ThreadMessage =
  | { readonly id: number; readonly result: CommandResult }
  | {
      readonly id: number;
      readonly failed: DriveFailure;
      readonly message: string;
      readonly details: Readonly<Record<string, string | number>>;
    }
  | { readonly helpId: number; readonly commandId: number; readonly help: HelpRequest }
  | { readonly closed: string };

/**
 * A task that must be done outside the driver for a step. `type`: type the text of this step into the element that has
 * the attribute named in `mark`. `cover`: hide the fields of the page and all of its text that contains a typed string.
 * `uncover`: show them again, and fail if any of them was visible in between.
 */
export type HelpRequest =
  | { readonly do: 'type'; readonly step: number; readonly mark: string }
  | { readonly do: 'cover' | 'uncover' };

/** Does the part of a step that must be done outside the driver. Throws DriveFailed. */
export type Helper = (help: HelpRequest) => Promise<void>;

/**
 * Sent to the thread when help has been given or has failed. `reply` is the id of the request for help, from `helpId`.
 */
export interface HelpReply {
  readonly reply: number;
  readonly failed?: Pick<DriveFailed, 'why' | 'message' | 'details'>;
}

/** Sent to the thread to end the connection of the session `sessionToDisconnect`. */
export interface DisconnectMessage {
  readonly sessionToDisconnect: string;
}
