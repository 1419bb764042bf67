// The tools that agents use over MCP: their names, their effects and their input. Names and fields are the same as in
// Playwright's MCP server, so prompts that were written for that server work here. `sessionId` is an addition, because
// several browsers may be controlled with one key.
import { type Static, type TSchema, Type } from 'typebox';
import { HandoffTerms, TTL_SECONDS_DEFAULT, TTL_SECONDS_MAX } from './handoffs.ts';
import { TIMEOUT_MAX_SECONDS, TIMEOUT_MIN_SECONDS } from './sessions.ts';

export const TOOL_FILES_MAX = 10;
export const TOOL_FIELDS_MAX = 50;
export const TOOL_WAIT_SECONDS_MAX = 30;
/** Maximum number of seconds that a tool waits for a person. Clients give up after 60 seconds. */
export const PERSON_WAIT_SECONDS_MAX = 50;
const TEXT_CHARACTERS_MAX = 100_000;
const URL_CHARACTERS_MAX = 8_192;
const PIXELS_MAX = 4_096;

const SessionIdField = Type.Optional(
  Type.String({
    format: 'uuid',
    description:
      'Session to use. May be omitted while this agent key has exactly one running session that was opened with browser_open.',
  }),
);
const ElementDescription = Type.Optional(
  Type.String({ maxLength: 500, description: 'Description of the element, for people who watch the session.' }),
);
const Ref = (description = 'Reference of the element in the newest snapshot of the page, for example `e12`.') =>
  Type.String({ pattern: '^(f[0-9]{1,6})?e[0-9]{1,9}$', maxLength: 20, description });
const Text = (description: string) => Type.String({ maxLength: TEXT_CHARACTERS_MAX, description });
const Url = (description: string) => Type.String({ minLength: 1, maxLength: URL_CHARACTERS_MAX, description });

/**
 * Every tool accepts an optional `sessionId`. Unknown fields are refused, because a misspelled field would change the
 * effect.
 */
const Input = <Fields extends Record<string, TSchema>>(fields: Fields) =>
  Type.Object({ sessionId: SessionIdField, ...fields }, { additionalProperties: false });

const FormField = Type.Object(
  {
    name: Type.String({ maxLength: 500, description: 'Description of the field, for people who watch the session.' }),
    type: Type.Enum(['textbox', 'checkbox', 'radio', 'combobox', 'slider'], { description: 'Kind of the field.' }),
    ref: Ref(),
    value: Text('Text to enter, label of the option to select, or `true` or `false` for a checkbox or radio button.'),
  },
  { additionalProperties: false },
);

const ToolFile = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 255, description: 'Name of the file.' }),
    mimeType: Type.Optional(
      Type.String({ maxLength: 100, description: 'Media type. Default: `application/octet-stream`.' }),
    ),
    text: Type.Optional(Type.String({ description: 'Content as text.' })),
    base64: Type.Optional(Type.String({ description: 'Content in base64.' })),
  },
  {
    additionalProperties: false,
    description:
      'Give the content in `text` or `base64`. Without either, the file with this name that was uploaded to the session through the API is used.',
  },
);

const Key = 'Name of the key, such as `Enter` or `ArrowLeft`, a character, or a combination such as `Control+A`.';

const { instructions, reason, allowedOrigins, record } = HandoffTerms.properties;
const HandoffId = Type.Optional(
  Type.String({ format: 'uuid', description: 'Id of the hand-off. Defaults to the newest hand-off of the session.' }),
);

interface Tool {
  readonly title: string;
  readonly description: string;
  readonly input: TSchema;
  /** True if calling the tool does not in itself change anything outside the browser. */
  readonly isReadOnly: boolean;
  /** The scope that the agent key needs in addition to `browsers:connect`. */
  readonly scope?: 'browsers:write' | 'browsers:read';
}

export const BROWSER_TOOLS = {
  browser_open: {
    title: 'Open a browser',
    description:
      'Opens a new browser session and returns its sessionId. Call this first. Several sessions may be open at the same time. Close each with browser_close when you are done.',
    input: Type.Object(
      {
        url: Type.Optional(Url('Page to open. Defaults to an empty page.')),
        contextId: Type.Optional(
          Type.String({
            format: 'uuid',
            description: 'Context to start from: cookies and storage of earlier sessions, for example a login.',
          }),
        ),
        persist: Type.Optional(
          Type.Boolean({ description: 'Save cookies and storage to the context when the session ends.' }),
        ),
        timeout: Type.Optional(
          Type.Integer({
            minimum: TIMEOUT_MIN_SECONDS,
            maximum: TIMEOUT_MAX_SECONDS,
            description:
              'Seconds after which the session ends, even while it is in use. Defaults to the time limit configured for the application.',
          }),
        ),
        width: Type.Optional(
          Type.Integer({
            minimum: 100,
            maximum: PIXELS_MAX,
            description: 'Width of the viewport in pixels. Must be given together with `height`.',
          }),
        ),
        height: Type.Optional(
          Type.Integer({
            minimum: 100,
            maximum: PIXELS_MAX,
            description: 'Height of the viewport in pixels. Must be given together with `width`.',
          }),
        ),
        metadata: Type.Optional(
          Type.Record(Type.String({ maxLength: 100 }), Type.String({ maxLength: 400 }), {
            description: 'Names and values by which the session can be found.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    isReadOnly: false,
    scope: 'browsers:write',
  },
  browser_close: {
    title: 'Close the browser',
    description: 'Ends the session. The browser is closed; the recording and the downloads are kept.',
    input: Input({}),
    isReadOnly: false,
    scope: 'browsers:write',
  },
  browser_sessions: {
    title: 'List open browsers',
    description: 'Lists the running sessions that this agent key opened with browser_open.',
    input: Type.Object({}, { additionalProperties: false }),
    isReadOnly: true,
    scope: 'browsers:read',
  },
  browser_hand_over: {
    title: 'Hand the browser to a person',
    description:
      'Asks for a person to take control of the browser, for example to sign in, to enter a code or to solve a challenge. The person opens a link, works in the browser, and gives control back. Then call browser_hand_over_wait.',
    input: Input({
      instructions,
      reason,
      minutes: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: TTL_SECONDS_MAX / 60,
          default: TTL_SECONDS_DEFAULT / 60,
          description: 'Minutes to wait for a person to take control.',
        }),
      ),
      claimableBy: Type.Optional(
        Type.Enum(['link', 'members'], {
          default: 'link',
          description:
            '`link`: whoever opens the link first. `members`: a member of the application, who must sign in; the link is then not a secret.',
        }),
      ),
      ...{ allowedOrigins, record },
    }),
    isReadOnly: false,
  },
  browser_hand_over_wait: {
    title: 'Wait for the person',
    description:
      'Waits until the person who was asked with browser_hand_over is done, and returns their message. Call it again while the hand-off is open.',
    input: Input({
      handoffId: HandoffId,
      seconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: PERSON_WAIT_SECONDS_MAX, default: PERSON_WAIT_SECONDS_MAX }),
      ),
    }),
    isReadOnly: true,
  },
  browser_hand_over_cancel: {
    title: 'Take the browser back',
    description: 'Cancels a hand-off that was requested with browser_hand_over, even while a person has control.',
    input: Input({ handoffId: HandoffId }),
    isReadOnly: false,
  },
  browser_navigate: {
    title: 'Go to an address',
    description: 'Opens an address in the current tab.',
    input: Input({ url: Url('The address to open.') }),
    isReadOnly: false,
  },
  browser_navigate_back: {
    title: 'Go back',
    description: 'Goes to the previous page in the history of the current tab.',
    input: Input({}),
    isReadOnly: true,
  },
  browser_navigate_forward: {
    title: 'Go forward',
    description: 'Goes to the next page in the history of the current tab.',
    input: Input({}),
    isReadOnly: true,
  },
  browser_reload: {
    title: 'Reload the page',
    description: 'Loads the current page again.',
    input: Input({}),
    isReadOnly: true,
  },
  browser_snapshot: {
    title: 'Read the page',
    description:
      'Returns the accessibility tree of the current page with a reference for each element, which other tools take as `ref`. Better than a screenshot for finding out what to do.',
    input: Input({}),
    isReadOnly: true,
  },
  browser_click: {
    title: 'Click',
    description: 'Clicks an element of the page.',
    input: Input({
      element: ElementDescription,
      ref: Ref(),
      doubleClick: Type.Optional(Type.Boolean({ description: 'Double-click instead of clicking once.' })),
      button: Type.Optional(Type.Enum(['left', 'right', 'middle'], { description: 'Mouse button. Default: `left`.' })),
      modifiers: Type.Optional(
        Type.Array(Type.Enum(['Alt', 'Control', 'ControlOrMeta', 'Meta', 'Shift']), {
          maxItems: 5,
          description: 'Keys to hold down.',
        }),
      ),
    }),
    isReadOnly: false,
  },
  browser_hover: {
    title: 'Move the mouse over an element',
    description: 'Moves the mouse over an element of the page.',
    input: Input({ element: ElementDescription, ref: Ref() }),
    isReadOnly: true,
  },
  browser_drag: {
    title: 'Drag and drop',
    description: 'Drags one element to another.',
    input: Input({
      startElement: ElementDescription,
      startRef: Ref('Reference of the element to drag.'),
      endElement: ElementDescription,
      endRef: Ref('Reference of the element to drop on.'),
    }),
    isReadOnly: false,
  },
  browser_type: {
    title: 'Type text',
    description: 'Enters text into an editable element, replacing what it contains.',
    input: Input({
      element: ElementDescription,
      ref: Ref(),
      text: Text('Text to enter.'),
      submit: Type.Optional(Type.Boolean({ description: 'Press Enter afterwards.' })),
      slowly: Type.Optional(
        Type.Boolean({ description: 'Type one character at a time, for pages that react to keys.' }),
      ),
    }),
    isReadOnly: false,
  },
  browser_fill_form: {
    title: 'Fill in a form',
    description: 'Fills in several fields.',
    input: Input({
      fields: Type.Array(FormField, { minItems: 1, maxItems: TOOL_FIELDS_MAX, description: 'The fields to fill in.' }),
    }),
    isReadOnly: false,
  },
  browser_press_key: {
    title: 'Press a key',
    description: 'Presses a key or a combination of keys.',
    input: Input({ key: Type.String({ minLength: 1, maxLength: 100, description: Key }) }),
    isReadOnly: false,
  },
  browser_select_option: {
    title: 'Select an option',
    description: 'Selects options of a drop-down list.',
    input: Input({
      element: ElementDescription,
      ref: Ref(),
      values: Type.Array(Type.String({ maxLength: 2_000 }), {
        minItems: 1,
        maxItems: 100,
        description: 'Values or labels to select.',
      }),
    }),
    isReadOnly: false,
  },
  browser_file_upload: {
    title: 'Choose files',
    description: 'Chooses files in the open file chooser, or in the file input that `ref` names.',
    input: Input({
      ref: Type.Optional(Ref('Reference of a file input. Defaults to the open file chooser.')),
      files: Type.Array(ToolFile, {
        maxItems: TOOL_FILES_MAX,
        description: 'The files to choose. An empty list clears the file input.',
      }),
    }),
    isReadOnly: false,
  },
  browser_take_screenshot: {
    title: 'Take a screenshot',
    description: 'Returns a screenshot of the page. Use browser_snapshot to find elements.',
    input: Input({
      element: ElementDescription,
      ref: Type.Optional(Ref('Reference of the element to capture. Defaults to the viewport.')),
      fullPage: Type.Optional(Type.Boolean({ description: 'Capture the whole page instead of the viewport.' })),
      type: Type.Optional(Type.Enum(['png', 'jpeg'], { description: 'Format. Default: `png`.' })),
    }),
    isReadOnly: true,
  },
  browser_wait_for: {
    title: 'Wait',
    description: 'Waits until text appears or disappears, or for a number of seconds.',
    input: Input({
      time: Type.Optional(Type.Number({ minimum: 0, maximum: TOOL_WAIT_SECONDS_MAX, description: 'Seconds to wait.' })),
      text: Type.Optional(
        Type.String({ minLength: 1, maxLength: 1_000, description: 'Text that must become visible.' }),
      ),
      textGone: Type.Optional(
        Type.String({ minLength: 1, maxLength: 1_000, description: 'Text that must disappear.' }),
      ),
    }),
    isReadOnly: true,
  },
  browser_tabs: {
    title: 'Tabs',
    description: 'Lists, opens, selects or closes tabs. Other tools work in the current tab.',
    input: Input({
      action: Type.Enum(['list', 'new', 'select', 'close'], { description: 'What to do.' }),
      index: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 1_000,
          description: 'Number of the tab, counted from 0. `close` without a number closes the current tab.',
        }),
      ),
      url: Type.Optional(Url('Page to open in a new tab.')),
    }),
    isReadOnly: false,
  },
  browser_handle_dialog: {
    title: 'Answer a dialog',
    description: 'Accepts or dismisses an alert, a confirmation or a prompt of the page.',
    input: Input({
      accept: Type.Boolean({ description: '`true` accepts the dialog, `false` dismisses it.' }),
      promptText: Type.Optional(Text('Text for a prompt.')),
    }),
    isReadOnly: false,
  },
  browser_evaluate: {
    title: 'Run JavaScript',
    description: 'Runs JavaScript in the page, and returns its value as JSON.',
    input: Input({
      function: Text('`() => { … }`, or `(element) => { … }` with `ref`.'),
      element: ElementDescription,
      ref: Type.Optional(Ref('Reference of the element to pass to the function.')),
    }),
    isReadOnly: false,
  },
  browser_console_messages: {
    title: 'Console',
    description: 'Returns what the page wrote to the console.',
    input: Input({ onlyErrors: Type.Optional(Type.Boolean({ description: 'Return errors only.' })) }),
    isReadOnly: true,
  },
  browser_network_requests: {
    title: 'Network requests',
    description: 'Returns the network requests of the page, with their HTTP status.',
    input: Input({}),
    isReadOnly: true,
  },
  browser_resize: {
    title: 'Resize the viewport',
    description: 'Changes the size of the viewport.',
    input: Input({
      width: Type.Integer({ minimum: 100, maximum: PIXELS_MAX, description: 'Width in pixels.' }),
      height: Type.Integer({ minimum: 100, maximum: PIXELS_MAX, description: 'Height in pixels.' }),
    }),
    isReadOnly: true,
  },
} as const satisfies Readonly<Record<string, Tool>>;

export type BrowserToolName = keyof typeof BROWSER_TOOLS;
export type BrowserToolInput<Name extends BrowserToolName> = Static<(typeof BROWSER_TOOLS)[Name]['input']>;

export const isBrowserTool = (name: string): name is BrowserToolName => Object.hasOwn(BROWSER_TOOLS, name);

/**
 * The tool that waits for a person or for the end of a long-running call. It is offered if the key may call an
 * operation that can require such a wait.
 */
export const RESULT_TOOL = {
  name: 'berth_result',
  title: 'Wait for the result of a call',
  description:
    'Waits until a person has decided on a call and then makes the call, or waits until a long-running call has ended. Returns the result of the call. Pass the jobId or the invocationId that the tool of the operation returned.',
  input: Type.Object(
    {
      jobId: Type.Optional(Type.String({ format: 'uuid', description: 'Id of a call that is waiting for approval.' })),
      invocationId: Type.Optional(Type.String({ format: 'uuid', description: 'Id of a call that has not ended.' })),
      seconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: PERSON_WAIT_SECONDS_MAX, default: PERSON_WAIT_SECONDS_MAX }),
      ),
    },
    { additionalProperties: false },
  ),
} as const;
