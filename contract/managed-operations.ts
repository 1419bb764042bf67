// The built-in operations: what each one does, its input and its output. Browser operations run in a session of the
// application.
import { type TSchema, Type } from 'typebox';
import { AnyObject, Time, Uuid } from './common.ts';
import { CREDENTIAL_ID_OPTIONS } from './credential-names.ts';
import { Download } from './files.ts';
import {
  HANDOFF_OUTCOMES,
  HandoffTerms,
  INSTRUCTIONS_CHARACTERS_MAX,
  NOTE_CHARACTERS_MAX,
  TTL_SECONDS_DEFAULT,
} from './handoffs.ts';
import type { ManagedOperation } from './managed-operation.ts';
import { MEMORY_OPERATIONS, type MemoryOperationId } from './memory-operations.ts';
import { BrowserSettings, CreateSession } from './sessions.ts';

export const CONTENT_BYTES_MAX = 1_048_576;
const CONTENT_BYTES_DEFAULT = 262_144;
export const OPERATION_TIMEOUT_MS_MAX = 120_000;
export const OPERATION_TIMEOUT_MS_DEFAULT = 30_000;
/** Price of a call in micro-credits, unless the application sets another price. Metered use is charged in addition. */
export const MANAGED_PRICE_MICRO_CREDITS = 0;
const FIELDS_MAX = 50;
export const STEPS_MAX = 100;
export const STEP_SLEEP_MS_MAX = 10_000;
export const STEP_CONTENT_BYTES_MAX = 65_536;
const STEP_VALUE_CHARACTERS_MAX = 20_000;
const SCROLL_PIXELS_MAX = 100_000;
const VALUES_MAX = 100;
/** Maximum number of screenshots and PDF files per call. */
export const STEP_ARTIFACTS_MAX = 20;
/** Maximum number of hand-offs per call. */
export const STEP_HANDOFFS_MAX = 5;
/**
 * Seconds by which each hand-off extends the session of a call, in addition to the waiting time of the hand-off. The
 * person has this time to work.
 */
export const STEP_HANDOFF_CONTROL_SECONDS = 600;
/** Maximum number of files that one step chooses. */
const STEP_FILES_MAX = 10;
const STEP_FILE_CHARACTERS_MAX = 200_000;

const Selector = (description: string) => Type.String({ minLength: 1, maxLength: 1000, description });

const { viewport, networkPolicy, allowedDomains, userAgent, locale, timezoneId } = BrowserSettings.properties;

/** Input fields of all built-in operations that open or use a page. */
export const PAGE_INPUT = {
  url: Type.Optional(
    Type.String({
      pattern: '^https?://',
      maxLength: 8192,
      description: 'Address of the page. A session is created for this call and released after it.',
    }),
  ),
  sessionId: Type.Optional(
    Uuid(
      'A running session of the application: the call works on its first page. Requires the scope `browsers:connect`. Give either this or `url`.',
    ),
  ),
  waitUntil: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1000,
      default: 'load',
      description:
        '`load`, `domcontentloaded`, `networkidle`, or a CSS selector that must become visible. With `url` only.',
    }),
  ),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 1000,
      maximum: OPERATION_TIMEOUT_MS_MAX,
      default: OPERATION_TIMEOUT_MS_DEFAULT,
      description: 'Time limit of the call in milliseconds, not counting the start of the browser.',
    }),
  ),
  acceptStatus: Type.Optional(
    Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), {
      maxItems: 20,
      default: [],
      description:
        'HTTP statuses of the page above 399 that count as success. By default the call fails with `page_failed`, because a screenshot of an error page is not a success.',
    }),
  ),
  viewport,
  contextId: Type.Optional(Uuid('A context whose cookies and storage the session starts with. With `url` only.')),
  proxies: CreateSession.properties.proxies,
  ...{ allowedDomains, networkPolicy, userAgent, locale, timezoneId },
};

export const Artifact = Type.Object(
  {
    downloadUrl: Type.String({ description: 'Link to the file. Works without a credential until it expires.' }),
    downloadUrlExpiresAt: Time('When the link expires. Read the invocation again to get a new link.'),
    mimeType: Type.String(),
    size: Type.Integer({ description: 'Size in bytes.' }),
    checksum: Type.String({ description: 'SHA-256 in lower-case hexadecimal.' }),
  },
  { description: 'A file that the call produced. It is kept for 31 days.' },
);

/** The downloaded files are kept for as long as all other downloads of the session. */
const Downloads = Type.Array(Download, {
  description: 'The files that the browser downloaded, in the order in which the downloads began.',
});

const PAGE_OUTPUT = {
  url: Type.String({ description: 'Address of the page at the end, after redirects.' }),
  title: Type.String(),
  status: Type.Optional(Type.Integer({ description: 'HTTP status of the page. Absent with `sessionId`.' })),
};

const Input = <Fields extends Record<string, TSchema>>(fields: Fields) =>
  Type.Object({ ...PAGE_INPUT, ...fields }, { additionalProperties: false });

const RequestedFields = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' }),
  Type.Object(
    {
      selector: Selector('CSS selector.'),
      attribute: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z_:][A-Za-z0-9_.:-]{0,63}$',
          description: 'Read the value of this attribute instead of the text.',
        }),
      ),
      all: Type.Optional(
        Type.Boolean({
          default: false,
          description: `Return a list of all matches, at most ${VALUES_MAX}, instead of the first match.`,
        }),
      ),
    },
    { additionalProperties: false },
  ),
  {
    minProperties: 1,
    maxProperties: FIELDS_MAX,
    description: 'The values to read, each under a name. The output uses the same names.',
  },
);

const ExtractedFields = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Null(), Type.Array(Type.String())]),
  {
    description: 'Text or attribute by name; `null` if nothing matches.',
  },
);

const SCREENSHOT_OPTIONS = {
  fullPage: Type.Optional(
    Type.Boolean({ default: false, description: 'Capture the whole page instead of the visible part.' }),
  ),
  format: Type.Optional(Type.Enum(['png', 'jpeg'], { default: 'png' })),
  quality: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 80, description: 'Quality of a JPEG.' })),
};

const PDF_OPTIONS = {
  paper: Type.Optional(
    Type.Enum(['A3', 'A4', 'A5', 'Letter', 'Legal', 'Tabloid'], { default: 'A4', description: 'Paper format.' }),
  ),
  landscape: Type.Optional(Type.Boolean({ default: false })),
  background: Type.Optional(Type.Boolean({ default: true, description: 'Print background colors and images.' })),
  pages: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$',
      maxLength: 200,
      description: 'Only these pages, for example `1-3,5`.',
    }),
  ),
};

const StepFile = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[^/\\\\\\x00-\\x1f]+$',
      description: 'File name that the page sees.',
    }),
    mimeType: Type.Optional(Type.String({ maxLength: 255, default: 'application/octet-stream' })),
    text: Type.Optional(
      Type.String({ maxLength: STEP_FILE_CHARACTERS_MAX, description: 'Content of the file as text.' }),
    ),
    base64: Type.Optional(
      Type.String({
        maxLength: STEP_FILE_CHARACTERS_MAX,
        pattern: '^[A-Za-z0-9+/]*={0,2}$',
        description: 'Content of the file in base64. Give either this or `text`.',
      }),
    ),
  },
  { additionalProperties: false },
);

const { instructions, reason, ttlSeconds, leaseSeconds, pageId, allowedOrigins, record, extendSession } =
  HandoffTerms.properties;

const HandoffIdField = Uuid('Id of the hand-off.');
const HandoffNote = Type.Optional(
  Type.String({ maxLength: NOTE_CHARACTERS_MAX, description: 'What the person wrote. Untrusted text.' }),
);

/** The required fields (`needs`) and optional fields (`can`) of each step, besides `do`. */
export const STEP_FIELDS = {
  goto: { needs: ['url'], can: ['waitUntil'] },
  waitFor: { needs: ['selector'], can: ['state'] },
  click: { needs: ['selector'], can: ['button', 'double'] },
  fill: { needs: ['selector'], can: ['value', 'credential', 'field', 'totp'] },
  select: { needs: ['selector', 'values'], can: [] },
  press: { needs: ['key'], can: ['selector'] },
  hover: { needs: ['selector'], can: [] },
  scroll: { needs: [], can: ['selector', 'x', 'y'] },
  upload: { needs: ['selector', 'files'], can: [] },
  download: { needs: ['selector'], can: [] },
  screenshot: { needs: [], can: ['selector', 'fullPage', 'format', 'quality'] },
  pdf: { needs: [], can: ['paper', 'landscape', 'background', 'pages'] },
  content: { needs: [], can: ['selector', 'as', 'maxBytes'] },
  extract: { needs: ['fields'], can: [] },
  sleep: { needs: ['ms'], can: [] },
  handoff: { needs: ['instructions'], can: ['reason', 'ttlSeconds', 'leaseSeconds', 'allowedOrigins', 'record'] },
} as const satisfies Readonly<Record<string, { needs: readonly string[]; can: readonly string[] }>>;

export type StepName = keyof typeof STEP_FIELDS;

const STEP_NAMES = Object.keys(STEP_FIELDS) as StepName[]; // Object.keys() returns strings.

const describeStepFields = (stepName: StepName): string => {
  const { needs, can }: { readonly needs: readonly string[]; readonly can: readonly string[] } = STEP_FIELDS[stepName];
  const names = [...needs.map(name => `\`${name}\``), ...can.map(name => `\`${name}\` (optional)`)];
  return `\`${stepName}\`: ${names.join(', ')}`;
};

export const Step = Type.Object(
  {
    do: Type.Enum(STEP_NAMES, {
      description: `What the step does, and its fields. ${STEP_NAMES.map(describeStepFields).join('. ')}.`,
    }),
    url: Type.Optional(
      Type.String({ pattern: '^https?://', maxLength: 8192, description: 'Address to open, for `goto`.' }),
    ),
    waitUntil: Type.Optional(
      Type.Enum(['load', 'domcontentloaded', 'networkidle'], {
        default: 'load',
        description: 'What `goto` waits for.',
      }),
    ),
    selector: Type.Optional(Selector('CSS selector: the first element that matches.')),
    state: Type.Optional(
      Type.Enum(['visible', 'hidden'], { default: 'visible', description: 'What `waitFor` waits for.' }),
    ),
    button: Type.Optional(
      Type.Enum(['left', 'right', 'middle'], { default: 'left', description: 'Mouse button for `click`.' }),
    ),
    double: Type.Optional(Type.Boolean({ default: false, description: 'Whether `click` clicks twice.' })),
    value: Type.Optional(
      Type.String({
        maxLength: STEP_VALUE_CHARACTERS_MAX,
        description: 'What `fill` enters into the field, replacing its value.',
      }),
    ),
    credential: Type.Optional(
      Type.String({
        ...CREDENTIAL_ID_OPTIONS,
        description:
          'For `fill`, with `field` and without `value`: a credential of the type `login`. The service types it only if the origins of the page and of the frame are among its `origins`; otherwise the step fails with `input_not_granted` and nothing is typed.',
      }),
    ),
    field: Type.Optional(
      Type.Enum(['username', 'password'], {
        description: 'The part of `credential` that `fill` enters into the field.',
      }),
    ),
    totp: Type.Optional(
      Type.String({
        ...CREDENTIAL_ID_OPTIONS,
        description:
          'For `fill`, without `value`: a credential of the type `login` that has a `totpSeed`. Its current one-time code is typed, under the same conditions as for `credential`.',
      }),
    ),
    values: Type.Optional(
      Type.Array(Type.String({ maxLength: 1000 }), {
        maxItems: VALUES_MAX,
        description: 'The options that `select` selects, by value or label.',
      }),
    ),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'Key or key combination for `press`, for example `Enter` or `Control+A`.',
      }),
    ),
    x: Type.Optional(
      Type.Integer({
        minimum: -SCROLL_PIXELS_MAX,
        maximum: SCROLL_PIXELS_MAX,
        default: 0,
        description: 'Pixels that `scroll` scrolls to the right.',
      }),
    ),
    y: Type.Optional(
      Type.Integer({
        minimum: -SCROLL_PIXELS_MAX,
        maximum: SCROLL_PIXELS_MAX,
        default: 0,
        description: 'Pixels that `scroll` scrolls down. With `selector`, the element is scrolled into view first.',
      }),
    ),
    files: Type.Optional(
      Type.Array(StepFile, {
        maxItems: STEP_FILES_MAX,
        description: 'The files that `upload` chooses in the file input. An empty list clears the choice.',
      }),
    ),
    ...SCREENSHOT_OPTIONS,
    ...PDF_OPTIONS,
    as: Type.Optional(
      Type.Enum(['text', 'html', 'links'], { default: 'text', description: 'What `content` returns.' }),
    ),
    maxBytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: STEP_CONTENT_BYTES_MAX,
        default: STEP_CONTENT_BYTES_MAX,
        description: 'Maximum size of the content in bytes. Longer content is truncated.',
      }),
    ),
    fields: Type.Optional(RequestedFields),
    ms: Type.Optional(
      Type.Integer({ minimum: 1, maximum: STEP_SLEEP_MS_MAX, description: 'Duration of `sleep`, in milliseconds.' }),
    ),
    instructions: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: INSTRUCTIONS_CHARACTERS_MAX,
        description:
          'What `handoff` asks a member of the application to do, as plain text. The steps continue when the person has completed the hand-off; the time does not count against `timeoutMs`.',
      }),
    ),
    ...{ reason, ttlSeconds, leaseSeconds, allowedOrigins, record },
  },
  { additionalProperties: false },
);

/**
 * The revision of an operation increases when its input, its output or its effect changes, because receipts name the
 * revision.
 */
export const MANAGED_OPERATIONS = {
  'browser.screenshot': {
    title: 'Screenshot of a page',
    description: 'Opens a page, or uses the page of a session, and returns a screenshot of it.',
    effect: 'read',
    revision: 1,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input({
      ...SCREENSHOT_OPTIONS,
      selector: Type.Optional(Selector('CSS selector: only the first element that matches.')),
    }),
    output: Type.Object({
      ...{ artifact: Artifact, ...PAGE_OUTPUT },
      width: Type.Integer({ description: 'Width in pixels.' }),
      height: Type.Integer({ description: 'Height in pixels.' }),
    }),
    example: { url: 'https://example.com', fullPage: true },
  },
  'browser.pdf': {
    title: 'PDF of a page',
    description: 'Opens a page, or uses the page of a session, and prints it as a PDF file.',
    effect: 'read',
    revision: 1,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input(PDF_OPTIONS),
    output: Type.Object({
      ...{ artifact: Artifact, ...PAGE_OUTPUT },
      pages: Type.Optional(Type.Integer({ description: 'Number of pages in the file.' })),
    }),
    example: { url: 'https://example.com', paper: 'A4' },
  },
  'browser.content': {
    title: 'Content of a page',
    description: 'Opens a page, or uses the page of a session, and returns its content as text.',
    effect: 'read',
    revision: 1,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input({
      as: Type.Optional(
        Type.Enum(['markdown', 'text', 'html', 'links'], {
          default: 'markdown',
          description:
            '`markdown`: the main content, without navigation. `text`: what a reader sees. `html`: the document. `links`: one address per line.',
        }),
      ),
      selector: Type.Optional(Selector('CSS selector: only the first element that matches.')),
      maxBytes: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: CONTENT_BYTES_MAX,
          default: CONTENT_BYTES_DEFAULT,
          description: 'Maximum size of the content in bytes. Longer content is truncated.',
        }),
      ),
    }),
    output: Type.Object({
      ...{ content: Type.String(), ...PAGE_OUTPUT },
      truncated: Type.Boolean({ description: 'Whether the content was truncated at `maxBytes`.' }),
    }),
    example: { url: 'https://example.com', as: 'markdown' },
  },
  'browser.extract': {
    title: 'Values from a page',
    description:
      'Opens a page, or uses the page of a session, and returns the values of the elements that match the given selectors.',
    effect: 'read',
    revision: 1,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input({
      fields: RequestedFields,
    }),
    output: Type.Object({
      fields: ExtractedFields,
      ...PAGE_OUTPUT,
    }),
    example: { url: 'https://example.com', fields: { heading: { selector: 'h1' } } },
  },
  'browser.download': {
    title: 'Download files',
    description:
      'Opens the address of a file, or opens a page and clicks an element on it, and returns the files that the browser downloads. Fails unless every file is complete.',
    effect: 'read',
    revision: 1,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input({
      selector: Type.Optional(
        Selector('CSS selector of the element to click. If absent, `url` is the address of the file itself.'),
      ),
    }),
    output: Type.Object({ downloads: Downloads, ...PAGE_OUTPUT }),
    example: { url: 'https://example.com/reports', selector: 'a.report' },
  },
  'browser.handoff': {
    title: 'Hand a session to a person',
    description:
      'Asks for a person, a member of the application, to take control of a running session, and waits until they are done. For a sign-in, a code, a challenge, or a decision that a person must make.',
    effect: 'write',
    revision: 1,
    timeoutMs: 1000 * TTL_SECONDS_DEFAULT,
    input: Type.Object(
      {
        sessionId: Uuid('A running session of the application. Requires the scope `browsers:connect`.'),
        ...{ instructions, reason, ttlSeconds, leaseSeconds, pageId, allowedOrigins, record, extendSession },
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      handoffId: HandoffIdField,
      outcome: Type.Enum([...HANDOFF_OUTCOMES], {
        description: '`completed`: done. `declined`: the person refused. `failed`: it was not possible.',
      }),
      note: HandoffNote,
      evidence: Type.Optional(AnyObject('What the page of the hand-off added. Untrusted.')),
      url: Type.Optional(
        Type.String({
          description:
            'Address of the page when the hand-off ended, without its query and fragment. Text that was typed since the service started is replaced by `[redacted]`. If the session has no log, the path is left out, too.',
        }),
      ),
    }),
    example: { sessionId: '3f0c8f5e-0000-7000-8000-000000000000', instructions: 'Enter the code from your bank app.' },
  },
  'browser.steps': {
    title: 'Steps in a page',
    description:
      'Opens a page, or uses the page of a session, and performs steps in it one after the other: navigates, clicks, fills in, reads. It stops at the first step that fails.',
    effect: 'write',
    revision: 5,
    timeoutMs: OPERATION_TIMEOUT_MS_DEFAULT,
    input: Input({
      steps: Type.Array(Step, {
        minItems: 1,
        maxItems: STEPS_MAX,
        description: `The steps to perform in the page. At most ${STEP_ARTIFACTS_MAX} of them may be a \`screenshot\` or \`pdf\`, and at most ${STEP_HANDOFFS_MAX} a \`handoff\`.`,
      }),
    }),
    output: Type.Object({
      results: Type.Array(
        Type.Object({
          do: Type.Enum(STEP_NAMES),
          content: Type.Optional(Type.String({ description: 'For `content`, the content of the page.' })),
          truncated: Type.Optional(Type.Boolean({ description: 'Whether the content was truncated at `maxBytes`.' })),
          fields: Type.Optional(ExtractedFields),
          artifact: Type.Optional(
            Type.Integer({ description: 'For `screenshot` and `pdf`, the index of the file in `artifacts`.' }),
          ),
          width: Type.Optional(Type.Integer({ description: 'For `screenshot`, the width in pixels.' })),
          height: Type.Optional(Type.Integer({ description: 'For `screenshot`, the height in pixels.' })),
          pages: Type.Optional(Type.Integer({ description: 'For `pdf`, the number of pages in the file.' })),
          downloads: Type.Optional(
            Type.Array(Type.Integer(), { description: 'For `download`, the indexes of the files in `downloads`.' }),
          ),
          handoffId: Type.Optional(Uuid('For `handoff`, the id of the hand-off.')),
          note: HandoffNote,
        }),
        { description: 'One result for each step, in order.' },
      ),
      artifacts: Type.Array(Artifact, { description: 'The files, in the order of the steps that produced them.' }),
      downloads: Type.Optional(Downloads),
      ...PAGE_OUTPUT,
    }),
    example: {
      url: 'https://example.com',
      steps: [
        { do: 'fill', selector: '#q', value: 'lamps' },
        { do: 'press', key: 'Enter' },
        { do: 'waitFor', selector: '.results' },
        { do: 'content', selector: '.results' },
      ],
    },
  },
  ...MEMORY_OPERATIONS,
} as const satisfies Readonly<Record<string, ManagedOperation>>;

export type ManagedOperationId = keyof typeof MANAGED_OPERATIONS;
/** The operations that run in a browser. */
export type BrowserOperationId = Exclude<ManagedOperationId, MemoryOperationId>;

/** Returns the schema without the markers that TypeBox adds to it. */
export const plainSchema = (schema: TSchema): Readonly<Record<string, unknown>> => JSON.parse(JSON.stringify(schema));
