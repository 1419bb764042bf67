// Executes each command with Playwright. Playwright's own errors are reported, because they state what Playwright
// waited for.
import type { Dialog, FileChooser, Locator, Page, Response } from 'playwright-core';
import { capture } from './capture.ts';
import { type Command, type CommandResult, DriveFailed, type Field, type Helper, type Ref } from './command.ts';
import { newestLines } from './newest-lines.ts';
import { runSteps } from './steps.ts';

/** The time limit for an element to become ready for an action. */
const ACTION_TIMEOUT_MS = 5_000;
const NAVIGATION_TIMEOUT_MS = 60_000;
const IMAGE_BYTES_MAX = 8 * 1024 ** 2;
const JPEG_QUALITY = 80;
const TEXT_CHARACTERS_MAX = 100_000;
/**
 * Maximum length of a value that a script returns, in characters of JSON. Only the first TEXT_CHARACTERS_MAX characters
 * are shown.
 */
const VALUE_CHARACTERS_MAX = 4_000_000;
const TEXT_TIMEOUT_MS = 30_000;

/** The members of DrivenBrowser that the commands use. */
export interface CommandTarget {
  readonly pages: readonly Page[];
  page(): Promise<Page>;
  /** Opens a tab, which becomes the current one. */
  open(): Promise<Page>;
  show(page: Page): void;
  takeDialog(): Dialog | undefined;
  takeChooser(): FileChooser | undefined;
}

type CommandOutput = Pick<CommandResult, 'text' | 'image' | 'captured' | 'stepsOutcome'>;
type Performers = {
  readonly [Name in Command['do']]: (
    target: CommandTarget,
    command: Extract<Command, { do: Name }>,
    help: Helper,
  ) => Promise<CommandOutput>;
};

export const perform = (target: CommandTarget, command: Command, help: Helper): Promise<CommandOutput> =>
  // Each function in PERFORMERS accepts only the command after which it is named.
  (PERFORMERS[command.do] as (target: CommandTarget, command: Command, help: Helper) => Promise<CommandOutput>)(
    target,
    command,
    help,
  );

const PERFORMERS: Performers = {
  navigate: async (target, { url }) => {
    await goTo(await target.page(), url);
    return {};
  },
  back: async target =>
    navigateHistory(await target.page(), page => page.goBack(LOAD_OPTIONS), 'There is no earlier page in the history.'),
  forward: async target =>
    navigateHistory(
      await target.page(),
      page => page.goForward(LOAD_OPTIONS),
      'There is no later page in the history.',
    ),
  reload: async target => {
    await (await target.page()).reload(LOAD_OPTIONS);
    return {};
  },
  snapshot: async () => ({}),

  click: async (target, { ref, double, button, modifiers }) => {
    const element = await locate(target, ref);
    const options = { button, modifiers: [...modifiers], timeout: ACTION_TIMEOUT_MS };
    await (double ? element.dblclick(options) : element.click(options));
    return {};
  },
  hover: async (target, { ref }) => {
    await (await locate(target, ref)).hover({ timeout: ACTION_TIMEOUT_MS });
    return {};
  },
  drag: async (target, { from, to }) => {
    await (await locate(target, from)).dragTo(await locate(target, to), { timeout: ACTION_TIMEOUT_MS });
    return {};
  },
  type: async (target, { ref, text, submit, slowly }) => {
    const element = await locate(target, ref);
    await (slowly
      ? element.pressSequentially(text, { timeout: NAVIGATION_TIMEOUT_MS })
      : element.fill(text, { timeout: ACTION_TIMEOUT_MS }));
    if (submit) await element.press('Enter', { timeout: ACTION_TIMEOUT_MS });
    return {};
  },
  fill: async (target, { fields }) => {
    for (const field of fields) await fill(target, field);
    return {};
  },
  press: async (target, { key }) => {
    await (await target.page()).keyboard.press(key);
    return {};
  },
  select: async (target, { ref, values }) => {
    await (await locate(target, ref)).selectOption([...values], { timeout: ACTION_TIMEOUT_MS });
    return {};
  },
  files: async (target, { ref, files }) => {
    const payload = files.map(({ name, mimeType, bytes }) => ({ name, mimeType, buffer: Buffer.from(bytes) }));
    if (ref !== undefined) {
      await (await locate(target, ref)).setInputFiles(payload, { timeout: ACTION_TIMEOUT_MS });
      return {};
    }
    const chooser = target.takeChooser();
    if (!chooser)
      throw new DriveFailed(
        'command',
        'No file chooser is open. First click the element that opens the file chooser, or give the ref of the file input.',
      );
    await chooser.setFiles(payload, { timeout: ACTION_TIMEOUT_MS });
    return {};
  },

  screenshot: async (target, { ref, fullPage, type }) => {
    const options = { type, timeout: NAVIGATION_TIMEOUT_MS, ...(type === 'jpeg' ? { quality: JPEG_QUALITY } : {}) };
    const bytes = await (ref === undefined
      ? (await target.page()).screenshot({ ...options, fullPage })
      : (await locate(target, ref)).screenshot(options));
    if (bytes.byteLength > IMAGE_BYTES_MAX)
      throw new DriveFailed(
        'command',
        `The screenshot has ${bytes.byteLength} bytes. The limit is ${IMAGE_BYTES_MAX} bytes. Use type jpeg, or omit fullPage.`,
      );
    return { image: { bytes: new Uint8Array(bytes), mimeType: `image/${type}` } };
  },
  wait: async (target, { ms, text, textGone }) => {
    const page = await target.page();
    if (ms !== undefined) await page.waitForTimeout(ms);
    const timeoutOptions = { timeout: TEXT_TIMEOUT_MS };
    if (textGone !== undefined)
      await page
        .getByText(textGone)
        .first()
        .waitFor({ state: 'hidden', ...timeoutOptions });
    if (text !== undefined)
      await page
        .getByText(text)
        .first()
        .waitFor({ state: 'visible', ...timeoutOptions });
    return {};
  },
  tabs: async (target, command) => {
    if (command.action === 'new') {
      const page = await target.open();
      if (command.url !== undefined) await goTo(page, command.url);
    }
    if (command.action === 'select') {
      const page = tabAt(target, command.index ?? -1);
      await page.bringToFront();
      target.show(page);
    }
    if (command.action === 'close')
      await (command.index === undefined ? await target.page() : tabAt(target, command.index)).close();
    return {};
  },
  dialog: async (target, { accept, text }) => {
    const dialog = target.takeDialog();
    if (!dialog) throw new DriveFailed('command', 'No dialog is open.');
    await (accept ? dialog.accept(text) : dialog.dismiss());
    return {};
  },
  evaluate: async (target, { code, ref }) => {
    const value = await (ref === undefined
      ? evaluateInPage(await target.page(), code)
      : evaluateOnElement(await locate(target, ref), code));
    return { text: truncate(value === undefined ? 'undefined' : jsonOf(value)) };
  },
  console: async (target, { errorsOnly }) => {
    const messages = await (await target.page()).consoleMessages();
    const selectedMessages = errorsOnly ? messages.filter(message => message.type() === 'error') : messages;
    return { text: newestLines(selectedMessages.map(message => `[${message.type()}] ${message.text()}`)) };
  },
  requests: async target => {
    const requests = await (await target.page()).requests();
    const statusOf = async (request: (typeof requests)[number]): Promise<string> => {
      if (request.failure()) return `failed: ${request.failure()?.errorText}`;
      return String(request.existingResponse()?.status() ?? 'pending');
    };
    return {
      text: newestLines(
        await Promise.all(
          requests.map(async request => `${request.method()} ${request.url()} ${await statusOf(request)}`),
        ),
      ),
    };
  },
  capture: async (target, command) => ({ captured: await capture(await target.page(), command.capture) }),
  steps: async (target, command, help) => ({ stepsOutcome: await runSteps(await target.page(), command.steps, help) }),
  resize: async (target, { width, height }) => {
    await (await target.page()).setViewportSize({ width, height });
    return {};
  },
};

const LOAD_OPTIONS = { waitUntil: 'load', timeout: NAVIGATION_TIMEOUT_MS } as const;

/**
 * Opens a URL. A page that does not finish loading within `ACTION_TIMEOUT_MS` after its document was parsed is used as
 * it is. A download does not open a page and is not an error.
 */
async function goTo(page: Page, url: string): Promise<void> {
  try {
    await page.goto(url, { waitUntil: 'domcontentloaded', timeout: NAVIGATION_TIMEOUT_MS });
  } catch (error) {
    if (error instanceof Error && error.message.includes('Download is starting')) return;
    throw error;
  }
  await page.waitForLoadState('load', { timeout: ACTION_TIMEOUT_MS }).catch(() => {});
}

async function navigateHistory(
  page: Page,
  move: (page: Page) => Promise<Response | null>,
  emptyMessage: string,
): Promise<CommandOutput> {
  const previousUrl = page.url();
  return (await move(page)) === null && page.url() === previousUrl ? { text: emptyMessage } : {};
}

async function locate(target: CommandTarget, ref: Ref): Promise<Locator> {
  const element = (await target.page()).getByRef(ref);
  if ((await element.count()) === 0)
    throw new DriveFailed(
      'command',
      `The newest snapshot of the page has no element ${ref}. Take a browser_snapshot and use a ref from it.`,
    );
  return element;
}

async function fill(target: CommandTarget, field: Field): Promise<void> {
  const element = await locate(target, field.ref);
  const timeoutOptions = { timeout: ACTION_TIMEOUT_MS };
  if (field.type === 'checkbox') await element.setChecked(field.checked, timeoutOptions);
  else if (field.type === 'select') await element.selectOption(field.value, timeoutOptions);
  else await element.fill(field.value, timeoutOptions);
}

/** Evaluates an expression, and calls the result if it is a function. */
const evaluateInPage = (page: Page, code: string): Promise<unknown> => page.evaluate(`(${evaluationSource(code)})()`);

/**
 * The source of a function that evaluates the code, and calls the result if it is a function. The debugger evaluates
 * the source, so no policy of the page can prevent it.
 */
const evaluationSource = (code: string): string =>
  `async (...given) => { const value = (${code}\n); return (${checkLength})(typeof value === 'function' ? await value(...given) : value, ${VALUE_CHARACTERS_MAX}); }`;

/**
 * Throws if a value is too long. Runs in the page, whose scripts can circumvent this check. In any case, the server
 * refuses a response that is too long, but with a less clear error.
 */
function checkLength(value: unknown, max: number): unknown {
  let length: number | undefined;
  try {
    length = JSON.stringify(value)?.length;
  } catch {} // `jsonOf` reports that JSON cannot express the value.
  if (length !== undefined && length > max)
    throw new Error(
      `The value has ${length} characters as JSON. The limit is ${max} characters. Return a shorter value.`,
    );
  return value;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value, undefined, 1);
  } catch {
    throw new DriveFailed(
      'command',
      'The value cannot be expressed as JSON, for example because it contains a BigInt or a reference to itself. Return another value, such as a string.',
    );
  }
}

async function evaluateOnElement(locator: Locator, code: string): Promise<unknown> {
  const element = await locator.elementHandle({ timeout: ACTION_TIMEOUT_MS });
  const frame = await element?.ownerFrame();
  if (!element || !frame) throw new DriveFailed('command', 'The element no longer exists. Take a browser_snapshot.');
  const functionHandle = await frame.evaluateHandle<(node: unknown) => unknown>(`(${evaluationSource(code)})`);
  try {
    return await element.evaluate((node, run) => run(node), functionHandle);
  } finally {
    await Promise.all([functionHandle.dispose(), element.dispose()]);
  }
}

function tabAt(target: CommandTarget, index: number): Page {
  const page = target.pages[index];
  if (!page)
    throw new DriveFailed('command', `There is no tab ${index} (open tabs: ${target.pages.length}, numbered from 0).`);
  return page;
}

const truncate = (text: string): string =>
  text.length <= TEXT_CHARACTERS_MAX
    ? text.toWellFormed()
    : `${text.slice(0, TEXT_CHARACTERS_MAX).toWellFormed()}\n(The first ${TEXT_CHARACTERS_MAX} of ${text.length} characters.)`;
