// One session's browser as Playwright sees it, in a thread of the driver: the current tab, and the dialog or file
// chooser that blocks it. Text from a page is cut at a named limit before it is used.
import {
  type Browser,
  type BrowserContext,
  chromium,
  type Dialog,
  type FileChooser,
  type Page,
  type Request,
} from 'playwright-core';
import { type Command, type CommandResult, DriveFailed, type Helper, type PageState, type Tab } from './command.ts';
import { type CommandTarget, perform } from './perform.ts';

const CONNECT_TIMEOUT_MS = 30_000;
const TITLE_TIMEOUT_MS = 1_000;
const SNAPSHOT_TIMEOUT_MS = 15_000;
/** How long to wait for a page to show the effect of an action, unless the action loads another page. */
const SETTLE_MS = 500;
const LOAD_TIMEOUT_MS = 10_000;
const SNAPSHOT_CHARACTERS_MAX = 200_000;
const TITLE_CHARACTERS_MAX = 300;
const URL_CHARACTERS_MAX = 2_000;
const TABS_SHOWN_MAX = 50;
const MESSAGE_CHARACTERS_MAX = 500;
/**
 * A folder that cannot exist, so that Playwright cannot write any files. With `noDefaults`, which leaves downloads to
 * the browser, Playwright should not try to write any.
 */
const NO_FOLDER = '/dev/null/none';

/** Commands after which the agent needs a new snapshot of the page. */
const SNAPSHOT_COMMANDS: ReadonlySet<Command['do']> = new Set<Command['do']>([
  ...([
    'navigate',
    'back',
    'forward',
    'reload',
    'snapshot',
    'click',
    'hover',
    'drag',
    'type',
    'fill',
    'press',
  ] as const),
  ...(['select', 'files', 'wait', 'dialog', 'resize'] as const),
]);
/** Commands that may change the page. */
const PAGE_CHANGING_COMMANDS: ReadonlySet<Command['do']> = new Set<Command['do']>([
  ...(['click', 'hover', 'drag', 'type', 'fill', 'press', 'select', 'files', 'dialog', 'evaluate'] as const),
]);

export class DrivenBrowser implements CommandTarget {
  readonly #browser: Browser;
  readonly #context: BrowserContext;
  #page: Page | undefined;
  #dialog: Dialog | undefined;
  #chooser: FileChooser | undefined;
  #dialogOpened = Promise.withResolvers<void>();
  #isCapturing = false;
  /**
   * Set when the page requests another document during a command. The promise resolves when that document has arrived
   * or failed.
   */
  #pendingDocument: PromiseWithResolvers<void> | undefined;

  private constructor(browser: Browser, context: BrowserContext) {
    this.#browser = browser;
    this.#context = context;
    for (const page of context.pages()) this.#watch(page);
    context.on('page', page => this.#watch(page));
    this.#page = context.pages()[0];
  }

  static async connect(address: string, onGone: () => void): Promise<DrivenBrowser> {
    try {
      const options = { noDefaults: true, artifactsDir: NO_FOLDER, timeout: CONNECT_TIMEOUT_MS };
      const browser = await chromium.connectOverCDP(address, options);
      browser.on('disconnected', onGone);
      const context = browser.contexts()[0] ?? (await browser.newContext());
      return new DrivenBrowser(browser, context);
    } catch (error) {
      throw new DriveFailed('connection', error instanceof Error ? error.message : 'unknown error');
    }
  }

  /** Disconnects from the browser. The session keeps running. */
  close(): Promise<void> {
    return this.#browser.close();
  }

  async run(command: Command, help: Helper): Promise<CommandResult> {
    try {
      return await this.#run(command, help);
    } catch (error) {
      if (this.#browser.isConnected()) throw error;
      throw new DriveFailed(
        'connection',
        'The connection to the browser was closed. Take a browser_snapshot and try again.',
      );
    }
  }

  async #run(command: Command, help: Helper): Promise<CommandResult> {
    if (command.do === 'capture' || command.do === 'steps') return this.#capture(command, help);
    this.#assertNotBlocked(command);
    this.#pendingDocument = undefined;
    const execution = perform(this, command, help);
    const firstOutcome = await Promise.race([execution, this.#dialogOpened.promise.then(() => 'dialog' as const)]);
    if (firstOutcome === 'dialog') execution.catch(() => {}); // The command continues, or fails, when the dialog is answered.
    const commandOutput = firstOutcome === 'dialog' ? {} : firstOutcome;
    if (!this.#dialog && PAGE_CHANGING_COMMANDS.has(command.do)) await this.#settle();
    const blockedBy = this.#blockedBy();
    const currentPage = this.#dialog ? undefined : await this.page();
    const [tabs, snapshot] = await Promise.all([
      this.tabs(),
      currentPage && SNAPSHOT_COMMANDS.has(command.do) ? this.#snapshot(currentPage) : {},
    ]);
    const page = currentPage && snapshot ? { ...(await urlAndTitleOf(currentPage, tabs)), ...snapshot } : undefined;
    return { ...commandOutput, tabs, ...(page ? { page } : {}), ...(blockedBy === undefined ? {} : { blockedBy }) };
  }

  /** Executes a command of an operation. Dialogs are dismissed, because nobody answers them. */
  async #capture(command: Command, help: Helper): Promise<CommandResult> {
    this.#isCapturing = true;
    try {
      const dialog = this.takeDialog();
      await dialog?.dismiss().catch(() => {}); // a person or another client may have answered it in the meantime
      return { ...(await perform(this, command, help)), tabs: [] };
    } finally {
      this.#isCapturing = false;
    }
  }

  // ---- used by the commands in perform.ts --------------------------------------------------------------------------

  get pages(): readonly Page[] {
    return this.#context.pages();
  }

  /** Returns the current tab, or a new one if all tabs were closed. */
  async page(): Promise<Page> {
    if (this.#page && !this.#page.isClosed()) return this.#page;
    this.#page = this.#context.pages().at(-1) ?? (await this.#context.newPage());
    return this.#page;
  }

  async open(): Promise<Page> {
    this.#page = await this.#context.newPage();
    return this.#page;
  }

  show(page: Page): void {
    this.#page = page;
  }

  takeDialog(): Dialog | undefined {
    const dialog = this.#dialog;
    this.#dialog = undefined;
    this.#dialogOpened = Promise.withResolvers<void>();
    return dialog;
  }

  takeChooser(): FileChooser | undefined {
    const chooser = this.#chooser;
    this.#chooser = undefined;
    return chooser;
  }

  async tabs(): Promise<readonly Tab[]> {
    const currentPage = this.#page;
    return Promise.all(
      this.#context
        .pages()
        .slice(0, TABS_SHOWN_MAX)
        .map(async (page, index) => ({
          ...{ index, url: truncate(page.url(), URL_CHARACTERS_MAX), isCurrent: page === currentPage },
          title: this.#dialog ? '' : await titleOf(page),
        })),
    );
  }

  // ---- dialogs and file choosers ---------------------------------------------------------------------------------

  #watch(page: Page): void {
    page.on('dialog', dialog => {
      if (this.#isCapturing) return void dialog.dismiss().catch(() => {});
      this.#dialog = dialog;
      this.#dialogOpened.resolve();
    });
    // Called regardless of who answered the dialog: the driver, a person in the live view, or another client.
    page.on('dialogclosed', dialog => {
      if (this.#dialog === dialog) this.takeDialog();
    });
    page.on('filechooser', chooser => {
      this.#chooser = chooser;
    });
    page.on('request', request => {
      if (page === this.#page && isNavigationOf(page, request)) this.#pendingDocument ??= Promise.withResolvers<void>();
    });
    const resolvePendingDocument = (): void => {
      if (page === this.#page) this.#pendingDocument?.resolve();
    };
    page.on('framenavigated', frame => {
      if (frame === page.mainFrame()) resolvePendingDocument();
    });
    const onSettled = (request: Request): void => {
      if (isNavigationOf(page, request)) resolvePendingDocument();
    };
    page.on('requestfinished', onSettled);
    page.on('requestfailed', onSettled);
    page.on('close', () => {
      if (this.#page === page) this.#page = undefined;
      if (this.#dialog?.page() === page) this.takeDialog();
    });
  }

  #assertNotBlocked(command: Command): void {
    const isAllowedWhileBlocked = command.do === 'dialog' || (command.do === 'tabs' && command.action === 'list');
    if (this.#dialog && !isAllowedWhileBlocked)
      throw new DriveFailed('command', `${this.#blockedBy()} Answer it with browser_handle_dialog first.`);
  }

  #blockedBy(): string | undefined {
    if (this.#dialog)
      return `A dialog is open (${this.#dialog.type()}): ${JSON.stringify(truncate(this.#dialog.message(), MESSAGE_CHARACTERS_MAX))}.`;
    return this.#chooser && 'A file chooser is open. Choose files with browser_file_upload.';
  }

  // ---- the state of the page -------------------------------------------------------------------------------------

  /** Waits until the page has drawn once and, if the action leads to another page, until that page has loaded. */
  async #settle(): Promise<void> {
    const page = await this.page();
    const dialog = this.#dialogOpened.promise;
    await Promise.race([waitForPaint(page), dialog, wait(SETTLE_MS)]);
    if (!this.#pendingDocument) return;
    await Promise.race([this.#pendingDocument.promise, dialog, wait(LOAD_TIMEOUT_MS)]);
    await Promise.race([page.waitForLoadState('load', { timeout: LOAD_TIMEOUT_MS }).catch(() => {}), dialog]);
  }

  /** Returns undefined if a dialog opens before the snapshot is taken. */
  async #snapshot(page: Page): Promise<Pick<PageState, 'snapshot' | 'isTruncated'> | undefined> {
    const snapshotText = await Promise.race([
      page.ariaSnapshot({ mode: 'ai', timeout: SNAPSHOT_TIMEOUT_MS }),
      this.#dialogOpened.promise.then(() => undefined),
    ]);
    if (snapshotText === undefined) return undefined;
    return {
      snapshot: truncate(snapshotText, SNAPSHOT_CHARACTERS_MAX),
      isTruncated: snapshotText.length > SNAPSHOT_CHARACTERS_MAX,
    };
  }
}

/** Returns the URL and title of the page. Requests the title only if the current tab is not in `tabs`. */
async function urlAndTitleOf(page: Page, tabs: readonly Tab[]): Promise<Pick<PageState, 'url' | 'title'>> {
  const title = tabs.find(({ isCurrent }) => isCurrent)?.title ?? (await titleOf(page));
  return { url: truncate(page.url(), URL_CHARACTERS_MAX), title };
}

const truncate = (text: string, characters: number): string => text.slice(0, characters).toWellFormed();

/** Whether the request loads another document into the page. Reading the frame of some requests throws. */
function isNavigationOf(page: Page, request: Request): boolean {
  try {
    return request.isNavigationRequest() && request.frame() === page.mainFrame();
  } catch {
    return false;
  }
}

/** Returns the title of a page, or an empty string if the page does not respond in time. */
const titleOf = async (page: Page): Promise<string> =>
  truncate(
    await Promise.race([page.title().catch(() => ''), wait(TITLE_TIMEOUT_MS).then(() => '')]),
    TITLE_CHARACTERS_MAX,
  );

/** Resolves when the page has drawn once, or when it navigates away. */
const waitForPaint = (page: Page): Promise<unknown> => page.evaluate(PAINT_SCRIPT).catch(() => {});
const PAINT_SCRIPT = 'new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))';

const wait = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
