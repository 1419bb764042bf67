// Executes each command with Playwright. Playwright's own errors are reported, because they say what was waited for.
import type { Dialog, FileChooser, Locator, Page, Response } from 'playwright-core';
import { capture } from './capture.ts';
import { type Command, type CommandResult, DriveFailed, type Field, type Helper, type Ref } from './command.ts';
import { runSteps } from './steps.ts';

/** The time limit for an element to become ready for an action. */
export const ACTION_MS = 5_000;
const NAVIGATION_MS = 60_000;
const IMAGE_BYTES_MAX = 8 * 1024 ** 2;
const JPEG_QUALITY = 80;
const TEXT_CHARACTERS_MAX = 100_000;
const LINES_MAX = 200;
const LINE_CHARACTERS_MAX = 1_000;
/** Maximum length, as JSON, of a value that a script returns. The part that is shown is cut at TEXT_CHARACTERS_MAX. */
const VALUE_CHARACTERS_MAX = 4_000_000;
const WAIT_FOR_TEXT_MS = 30_000;

/** What the commands need from the browser in which they run. */
export interface CommandTarget {
  readonly pages: readonly Page[];
  page(): Promise<Page>;
  /** Opens a tab, which becomes the current one. */
  open(): Promise<Page>;
  show(page: Page): void;
  takeDialog(): Dialog | undefined;
  takeChooser(): FileChooser | undefined;
}

type Said = Pick<CommandResult, 'text' | 'image' | 'captured' | 'stepsOutcome'>;
type Performers = {
  readonly [Name in Command['do']]: (
    on: CommandTarget,
    command: Extract<Command, { do: Name }>,
    help: Helper,
  ) => Promise<Said>;
};

export const perform = (on: CommandTarget, command: Command, help: Helper): Promise<Said> =>
  // Each function in PERFORMERS accepts only the command after which it is named.
  (PERFORMERS[command.do] as (on: CommandTarget, command: Command, help: Helper) => Promise<Said>)(on, command, help);

const PERFORMERS: Performers = {
  navigate: async (on, { url }) => {
    await goTo(await on.page(), url);
    return {};
  },
  back: async on =>
    navigateHistory(await on.page(), page => page.goBack(LOADED), 'There is no earlier page in the history.'),
  forward: async on =>
    navigateHistory(await on.page(), page => page.goForward(LOADED), 'There is no later page in the history.'),
  reload: async on => {
    await (await on.page()).reload(LOADED);
    return {};
  },
  snapshot: async () => ({}),

  click: async (on, { ref, double, button, modifiers }) => {
    const element = await at(on, ref);
    const options = { button, modifiers: [...modifiers], timeout: ACTION_MS };
    await (double ? element.dblclick(options) : element.click(options));
    return {};
  },
  hover: async (on, { ref }) => {
    await (await at(on, ref)).hover({ timeout: ACTION_MS });
    return {};
  },
  drag: async (on, { from, to }) => {
    await (await at(on, from)).dragTo(await at(on, to), { timeout: ACTION_MS });
    return {};
  },
  type: async (on, { ref, text, submit, slowly }) => {
    const element = await at(on, ref);
    await (slowly
      ? element.pressSequentially(text, { timeout: NAVIGATION_MS })
      : element.fill(text, { timeout: ACTION_MS }));
    if (submit) await element.press('Enter', { timeout: ACTION_MS });
    return {};
  },
  fill: async (on, { fields }) => {
    for (const field of fields) await fill(on, field);
    return {};
  },
  press: async (on, { key }) => {
    await (await on.page()).keyboard.press(key);
    return {};
  },
  select: async (on, { ref, values }) => {
    await (await at(on, ref)).selectOption([...values], { timeout: ACTION_MS });
    return {};
  },
  files: async (on, { ref, files }) => {
    const payload = files.map(({ name, mimeType, bytes }) => ({ name, mimeType, buffer: Buffer.from(bytes) }));
    if (ref !== undefined) {
      await (await at(on, ref)).setInputFiles(payload, { timeout: ACTION_MS });
      return {};
    }
    const chooser = on.takeChooser();
    if (!chooser)
      throw new DriveFailed(
        'command',
        'No file chooser is open. First click the element that opens it, or give the ref of the file input.',
      );
    await chooser.setFiles(payload, { timeout: ACTION_MS });
    return {};
  },

  screenshot: async (on, { ref, fullPage, type }) => {
    const options = { type, timeout: NAVIGATION_MS, ...(type === 'jpeg' ? { quality: JPEG_QUALITY } : {}) };
    const bytes = await (ref === undefined
      ? (await on.page()).screenshot({ ...options, fullPage })
      : (await at(on, ref)).screenshot(options));
    if (bytes.byteLength > IMAGE_BYTES_MAX)
      throw new DriveFailed(
        'command',
        `The screenshot has ${bytes.byteLength} bytes; the limit is ${IMAGE_BYTES_MAX} bytes. Use type jpeg, or omit fullPage.`,
      );
    return { image: { bytes: new Uint8Array(bytes), mimeType: `image/${type}` } };
  },
  wait: async (on, { ms, text, textGone }) => {
    const page = await on.page();
    if (ms !== undefined) await page.waitForTimeout(ms);
    const limit = { timeout: WAIT_FOR_TEXT_MS };
    if (textGone !== undefined)
      await page
        .getByText(textGone)
        .first()
        .waitFor({ state: 'hidden', ...limit });
    if (text !== undefined)
      await page
        .getByText(text)
        .first()
        .waitFor({ state: 'visible', ...limit });
    return {};
  },
  tabs: async (on, command) => {
    if (command.action === 'new') {
      const page = await on.open();
      if (command.url !== undefined) await goTo(page, command.url);
    }
    if (command.action === 'select') {
      const page = tabAt(on, command.index ?? -1);
      await page.bringToFront();
      on.show(page);
    }
    if (command.action === 'close')
      await (command.index === undefined ? await on.page() : tabAt(on, command.index)).close();
    return {};
  },
  dialog: async (on, { accept, text }) => {
    const dialog = on.takeDialog();
    if (!dialog) throw new DriveFailed('command', 'No dialog is open.');
    await (accept ? dialog.accept(text) : dialog.dismiss());
    return {};
  },
  evaluate: async (on, { code, ref }) => {
    const value = await (ref === undefined ? inPage(await on.page(), code) : onElement(await at(on, ref), code));
    return { text: cut(value === undefined ? 'undefined' : JSON.stringify(value, undefined, 1)) };
  },
  console: async (on, { errorsOnly }) => {
    const messages = await (await on.page()).consoleMessages();
    const shown = errorsOnly ? messages.filter(message => message.type() === 'error') : messages;
    return { text: lines(shown.map(message => `[${message.type()}] ${message.text()}`)) };
  },
  requests: async on => {
    const requests = await (await on.page()).requests();
    const status = async (request: (typeof requests)[number]): Promise<string> => {
      if (request.failure()) return `failed: ${request.failure()?.errorText}`;
      return String(request.existingResponse()?.status() ?? 'pending');
    };
    return {
      text: lines(
        await Promise.all(
          requests.map(async request => `${request.method()} ${request.url()} ${await status(request)}`),
        ),
      ),
    };
  },
  capture: async (on, command) => ({ captured: await capture(await on.page(), command.capture) }),
  steps: async (on, command, help) => ({ stepsOutcome: await runSteps(await on.page(), command.steps, help) }),
  resize: async (on, { width, height }) => {
    await (await on.page()).setViewportSize({ width, height });
    return {};
  },
};

const LOADED = { waitUntil: 'load', timeout: NAVIGATION_MS } as const;

/**
 * Opens a URL. A page that does not finish loading is shown as far as it has loaded. A download does not open a page
 * and is not an error.
 */
async function goTo(page: Page, url: string): Promise<void> {
  try {
    await page.goto(url, { waitUntil: 'domcontentloaded', timeout: NAVIGATION_MS });
  } catch (error) {
    if (error instanceof Error && error.message.includes('Download is starting')) return;
    throw error;
  }
  await page.waitForLoadState('load', { timeout: ACTION_MS }).catch(() => {});
}

async function navigateHistory(page: Page, go: (page: Page) => Promise<Response | null>, none: string): Promise<Said> {
  const before = page.url();
  return (await go(page)) === null && page.url() === before ? { text: none } : {};
}

async function at(on: CommandTarget, ref: Ref): Promise<Locator> {
  const element = (await on.page()).getByRef(ref);
  if ((await element.count()) === 0)
    throw new DriveFailed(
      'command',
      `The newest snapshot of the page has no element ${ref}. Take a browser_snapshot and use a ref from it.`,
    );
  return element;
}

async function fill(on: CommandTarget, field: Field): Promise<void> {
  const element = await at(on, field.ref);
  const limit = { timeout: ACTION_MS };
  if (field.type === 'checkbox') await element.setChecked(field.checked, limit);
  else if (field.type === 'select') await element.selectOption(field.value, limit);
  else await element.fill(field.value, limit);
}

/** Evaluates an expression, and calls the result if it is a function. */
const inPage = (page: Page, code: string): Promise<unknown> => page.evaluate(`(${evaluation(code)})()`);

/**
 * The source of a function that evaluates the code, and calls the result if it is a function. The debugger evaluates
 * the source, so no policy of the page can prevent it.
 */
const evaluation = (code: string): string =>
  `async (...given) => { const value = (${code}\n); return (${checkLength})(typeof value === 'function' ? await value(...given) : value, ${VALUE_CHARACTERS_MAX}); }`;

/**
 * Runs in the page, which can defeat this check. The server then refuses a response that is too long, with a less clear
 * error.
 */
function checkLength(value: unknown, most: number): unknown {
  let length: number | undefined;
  try {
    length = JSON.stringify(value)?.length;
  } catch {} // A value that JSON cannot express has other ways to the caller.
  if (length !== undefined && length > most)
    throw new Error(`The value has ${length} characters as JSON. At most ${most} are possible; return less.`);
  return value;
}

async function onElement(locator: Locator, code: string): Promise<unknown> {
  const element = await locator.elementHandle({ timeout: ACTION_MS });
  const frame = await element?.ownerFrame();
  if (!element || !frame) throw new DriveFailed('command', 'The element no longer exists. Take a browser_snapshot.');
  const functionHandle = await frame.evaluateHandle<(node: unknown) => unknown>(`(${evaluation(code)})`);
  try {
    return await element.evaluate((node, run) => run(node), functionHandle);
  } finally {
    await Promise.all([functionHandle.dispose(), element.dispose()]);
  }
}

function tabAt(on: CommandTarget, index: number): Page {
  const page = on.pages[index];
  if (!page)
    throw new DriveFailed('command', `There is no tab ${index} (open tabs: ${on.pages.length}, numbered from 0).`);
  return page;
}

const cut = (text: string): string =>
  text.length <= TEXT_CHARACTERS_MAX
    ? text.toWellFormed()
    : `${text.slice(0, TEXT_CHARACTERS_MAX).toWellFormed()}\n(The first ${TEXT_CHARACTERS_MAX} of ${text.length} characters.)`;

/** Returns the newest lines, shortened. */
function lines(all: readonly string[]): string {
  const shown = all.slice(-LINES_MAX).map(line => line.slice(0, LINE_CHARACTERS_MAX));
  const left = all.length - shown.length;
  return cut([...(left > 0 ? [`(${left} earlier entries are not shown)`] : []), ...shown].join('\n'));
}
