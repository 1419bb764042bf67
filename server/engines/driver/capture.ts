// Captures a page for an operation: opens its URL if one is given, and takes a screenshot, a PDF, text or values from
// the page.
import type { Page, Response } from 'playwright-core';
import { type Capture, type CapturedPage, DriveFailed, type WantedContent } from './command.ts';

/** Playwright's own default timeout, which is restored for the commands after a capture. */
export const PLAYWRIGHT_DEFAULT_TIMEOUT_MS = 30_000;
/**
 * Added to our own time limit, so that Playwright's timeouts expire first. Their messages state what Playwright waited
 * for.
 */
const TIMEOUT_MARGIN_MS = 1_000;
const LOAD_STATES = ['load', 'domcontentloaded', 'networkidle'] as const;
const TITLE_CHARACTERS_MAX = 300;
const URL_CHARACTERS_MAX = 8_192;
const FILE_BYTES_MAX = 50 * 1024 ** 2;
const TEXT_CHARACTERS_MAX = 8 * 1024 ** 2;
const LINKS_MAX = 10_000;
const VALUES_MAX = 100;
const VALUE_CHARACTERS_MAX = 20_000;

/**
 * Captures a page. The whole capture has one deadline, because `title`, `evaluate` and `pdf` have no timeout of their
 * own, and a page can hang after it has loaded.
 * Throws DriveFailed.
 */
export async function capture(page: Page, captureRequest: Capture): Promise<CapturedPage> {
  page.setDefaultTimeout(captureRequest.timeoutMs);
  try {
    return await withTimeout(captureRequest.timeoutMs, TIMEOUT_MARGIN_MS, openAndCapture(page, captureRequest));
  } finally {
    page.setDefaultTimeout(PLAYWRIGHT_DEFAULT_TIMEOUT_MS);
  }
}

/** Waits for work to finish. Throws DriveFailed `timeout` if it takes longer than the caller's limit and the margin. */
export async function withTimeout<T>(timeoutMs: number, marginMs: number, work: Promise<T>): Promise<T> {
  const { promise: timeoutPromise, reject } = Promise.withResolvers<never>();
  const fail = (): void =>
    reject(new DriveFailed('timeout', `The operation on the page did not finish within ${timeoutMs} ms.`));
  const timer = setTimeout(fail, timeoutMs + marginMs);
  try {
    return await Promise.race([work, timeoutPromise]);
  } finally {
    clearTimeout(timer);
  }
}

async function openAndCapture(
  page: Page,
  { url, waitUntil, timeoutMs, acceptStatus, wanted }: Capture,
): Promise<CapturedPage> {
  const visitOptions = { waitUntil, timeoutMs, acceptStatus };
  const isFile = wanted.kind === 'download' && wanted.selector === undefined;
  const status = url === undefined ? undefined : await (isFile ? visitFile : openPage)(page, { url, ...visitOptions });
  return { ...(await pageFieldsOf(page, status)), ...(await captureContent(page, wanted)) };
}

export const pageFieldsOf = async (
  page: Page,
  status?: number,
): Promise<Pick<CapturedPage, 'url' | 'title' | 'status'>> => ({
  url: page.url().slice(0, URL_CHARACTERS_MAX),
  title: await titleOf(page),
  ...(status === undefined ? {} : { status }),
});

type Visit = Required<Pick<Capture, 'url' | 'waitUntil' | 'timeoutMs' | 'acceptStatus'>>;

/**
 * Opens the URL and returns the HTTP status of the page. Throws DriveFailed for an error page, unless its status is
 * accepted.
 */
export async function openPage(
  page: Page,
  { url, waitUntil, timeoutMs, acceptStatus }: Visit,
): Promise<number | undefined> {
  const response = await open(page, url, waitUntil, timeoutMs);
  const status = response?.status();
  if (status === undefined || status < 400 || acceptStatus.includes(status)) return status;
  const finalUrl = page.url().slice(0, URL_CHARACTERS_MAX);
  throw new DriveFailed('page', `The page responded with the status ${status}.`, { pageStatus: status, url: finalUrl });
}

/**
 * Opens the URL of a file. Such a URL does not load as a page, because its navigation ends when the download begins.
 */
async function visitFile(page: Page, visit: Visit): Promise<number | undefined> {
  try {
    return await openPage(page, visit);
  } catch (error) {
    const isAborted = error instanceof DriveFailed && error.details.failure === 'net::ERR_ABORTED';
    if (isAborted || (error instanceof Error && error.message.includes('Download is starting'))) return undefined;
    throw error;
  }
}

async function open(page: Page, url: string, waitUntil: string, timeout: number): Promise<Response | undefined> {
  const loadState = LOAD_STATES.find(known => known === waitUntil);
  try {
    const response = await page.goto(url, { waitUntil: loadState ?? 'domcontentloaded', timeout });
    if (loadState === undefined) await page.locator(waitUntil).first().waitFor({ timeout });
    return response ?? undefined;
  } catch (error) {
    const text = error instanceof Error ? error.message : '';
    const [failure] = /net::ERR_[A-Z_]+/.exec(text) ?? [];
    if (failure !== undefined)
      throw new DriveFailed('page', `The page could not be loaded: ${failure}.`, { failure, url });
    if (!text.includes('Timeout')) throw error;
    const message =
      loadState === undefined
        ? `The page did not load and show an element that matches ${waitUntil} within ${timeout} ms.`
        : `The page did not reach the state ${loadState} within ${timeout} ms.`;
    throw new DriveFailed('timeout', message);
  }
}

export type CapturedContent = Omit<CapturedPage, 'url' | 'title' | 'status'>;

export async function captureContent(page: Page, spec: WantedContent): Promise<CapturedContent> {
  switch (spec.kind) {
    case 'screenshot':
      return captureScreenshot(page, spec);
    case 'pdf':
      return capturePdf(page, spec);
    case 'download':
      if (spec.selector !== undefined) await page.locator(spec.selector).first().click();
      return {};
    case 'fields':
      return { values: await valuesOf(page, spec.fields) };
    default:
      return captureText(page, spec);
  }
}

async function captureScreenshot(
  page: Page,
  screenshotSpec: Extract<WantedContent, { kind: 'screenshot' }>,
): Promise<CapturedContent> {
  const { fullPage, selector, format, quality } = screenshotSpec;
  const options = { type: format, ...(format === 'jpeg' ? { quality } : {}), scale: 'css' } as const;
  const bytes =
    selector === undefined
      ? await page.screenshot({ ...options, fullPage })
      : await page.locator(selector).first().screenshot(options);
  return { ...fileOf(bytes, `image/${format}`), ...imageSizeOf(bytes, format) };
}

async function capturePdf(page: Page, spec: Extract<WantedContent, { kind: 'pdf' }>): Promise<CapturedContent> {
  const { paper, landscape, background, pages } = spec;
  const bytes = await page.pdf({
    ...{ format: paper, landscape, printBackground: background },
    ...(pages === undefined ? {} : { pageRanges: pages }),
  });
  const countMatch = /\/Type\s*\/Pages\b[^>]*?\/Count\s+(\d{1,6})|\/Count\s+(\d{1,6})[^>]*?\/Type\s*\/Pages\b/.exec(
    bytes.toString('latin1'),
  );
  const pageCount = countMatch?.[1] ?? countMatch?.[2];
  return { ...fileOf(bytes, 'application/pdf'), ...(pageCount === undefined ? {} : { pages: Number(pageCount) }) };
}

async function captureText(
  page: Page,
  { kind, selector }: Extract<WantedContent, { kind: 'html' | 'text' | 'links' }>,
): Promise<CapturedContent> {
  const element = page.locator(selector ?? (kind === 'html' ? 'html' : 'body')).first();
  const fullText = await readContent(kind, element);
  return {
    text: fullText.slice(0, TEXT_CHARACTERS_MAX).toWellFormed(),
    isTruncated: fullText.length > TEXT_CHARACTERS_MAX,
  };
}

type PageLocator = ReturnType<Page['locator']>;

/**
 * Reads the content and cuts it in the page. The page may have replaced the functions that cut it, so the caller cuts
 * the result again.
 */
async function readContent(kind: 'html' | 'text' | 'links', element: PageLocator): Promise<string> {
  if (kind !== 'links') {
    const evaluateArgs = { name: kind === 'text' ? 'innerText' : 'outerHTML', max: TEXT_CHARACTERS_MAX + 1 };
    return textOf(
      await element.evaluate((node, { name, max }) => String(Object(node)[name] ?? '').slice(0, max), evaluateArgs),
    );
  }
  const links: unknown = await element.evaluate((node, max) => {
    const all: Iterable<{ href: unknown }> = Object(node).querySelectorAll('a[href]');
    return [...all].slice(0, max).map(({ href }) => href);
  }, LINKS_MAX);
  return Array.isArray(links) ? [...new Set(links.map(textOf))].join('\n') : '';
}

type Fields = Extract<WantedContent, { kind: 'fields' }>['fields'];

async function valuesOf(page: Page, fields: Fields): Promise<NonNullable<CapturedPage['values']>> {
  const values: Record<string, string | null | readonly string[]> = {};
  for (const [name, { selector, attribute, all }] of Object.entries(fields)) {
    const matches = page.locator(selector);
    const count = Math.min(await matches.count(), all ? VALUES_MAX : 1);
    const valueAt = async (index: number): Promise<string> => {
      const matchedElement = matches.nth(index);
      const value =
        attribute === undefined ? await matchedElement.innerText() : await matchedElement.getAttribute(attribute);
      return (value ?? '').slice(0, VALUE_CHARACTERS_MAX).toWellFormed();
    };
    const fieldValues = await Promise.all(Array.from({ length: count }, (_, index) => valueAt(index)));
    values[name] = all ? fieldValues : (fieldValues[0] ?? null);
  }
  return values;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const titleOf = async (page: Page): Promise<string> =>
  (await page.title().catch(() => '')).slice(0, TITLE_CHARACTERS_MAX).toWellFormed();

function fileOf(bytes: Buffer, mimeType: string): Pick<CapturedPage, 'bytes' | 'mimeType'> {
  if (bytes.length > FILE_BYTES_MAX)
    throw new DriveFailed('command', `The file is larger than ${FILE_BYTES_MAX / 1024 ** 2} MiB, which is the limit.`);
  return { bytes: new Uint8Array(bytes), mimeType };
}

/** Reads the size of an image from its header. */
function imageSizeOf(bytes: Buffer, format: 'png' | 'jpeg'): { width: number; height: number } {
  if (format === 'png') return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  for (let at = 2; at + 9 < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt8(at + 1);
    if (marker >= 0xc0 && marker <= 0xc2)
      return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
  }
  throw new DriveFailed('command', 'The size of the JPEG image that the browser returned could not be read.');
}
