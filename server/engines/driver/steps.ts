// Performs the steps of an operation in a page, one after the other, until one fails.
import { randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import { systemClock } from '../../kit/clock.ts';
import { captureContent, openPage, PLAYWRIGHT_DEFAULT_TIMEOUT_MS, pageFieldsOf, withTimeout } from './capture.ts';
import {
  DriveFailed,
  type FileContent,
  type Helper,
  type Step,
  type StepResult,
  type Steps,
  type StepsOutcome,
} from './command.ts';

/** Failures that are reported with the number of the step that failed. */
const STEP_FAILURES = new Set<unknown>(['command', 'page', 'timeout', 'refused']);

/**
 * Added to our own time limit, so that Playwright's timeouts expire first. Their messages state what Playwright waited
 * for.
 */
const TIMEOUT_MARGIN_MS = 500;

/** Maximum total size of the screenshots and PDF files of one call. */
const FILES_BYTES_MAX = 100 * 1024 ** 2;

const NO_STEPS = { steps: 0, bytes: 0, hasTyped: false };

/** Tracks which step of a call is running. */
class Progress {
  /** -1 before the first step. */
  step = -1;
  readonly #timeoutMs: number;
  readonly #endMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#endMs = systemClock.monotonicMs() + timeoutMs;
  }

  /**
   * Returns the milliseconds until the deadline. Throws DriveFailed when the deadline has passed, so that no step
   * begins after its call has failed.
   */
  remainingMs(): number {
    const timeLeftMs = this.#endMs - systemClock.monotonicMs();
    if (timeLeftMs > 0) return timeLeftMs;
    throw new DriveFailed('timeout', `The time limit of ${this.#timeoutMs} ms for all steps together was reached.`);
  }
}

/**
 * Performs the steps of an operation. All steps share one deadline, because some of Playwright's functions have no
 * timeout and a page can hang. Throws DriveFailed. If a step failed, `details.step` is its number, counted from 0.
 */
export async function runSteps(page: Page, request: Steps, help: Helper): Promise<StepsOutcome> {
  const progress = new Progress(request.timeoutMs);
  try {
    return await withTimeout(request.timeoutMs, TIMEOUT_MARGIN_MS, run(page, request, progress, help));
  } catch (error) {
    const { step } = progress;
    throw step < 0 ? error : withStepNumber(error, step + (request.before ?? NO_STEPS).steps, request.steps[step]);
  } finally {
    page.setDefaultTimeout(PLAYWRIGHT_DEFAULT_TIMEOUT_MS);
  }
}

async function run(page: Page, request: Steps, progress: Progress, help: Helper): Promise<StepsOutcome> {
  const { url, waitUntil, acceptStatus, steps, before = NO_STEPS } = request;
  const openUrl = (targetUrl: string, loadState: string) =>
    openPage(page, { url: targetUrl, waitUntil: loadState, timeoutMs: progress.remainingMs(), acceptStatus });
  page.setDefaultTimeout(progress.remainingMs());
  let status = url === undefined ? undefined : await openUrl(url, waitUntil);
  const results: StepResult[] = [];
  let { bytes, hasTyped } = before;
  for (const [index, step] of steps.entries()) {
    progress.step = index;
    page.setDefaultTimeout(progress.remainingMs());
    if (step.do === 'goto') {
      status = await openUrl(step.url, step.waitUntil);
      results.push({ do: 'goto' });
    } else if (step.do === 'type') {
      hasTyped = true;
      results.push(
        await typeIntoField(page, step.selector, mark => help({ do: 'type', step: before.steps + index, mark })),
      );
    } else if (isVisualCapture(step) && hasTyped) results.push(await whileCovered(help, () => perform(page, step)));
    else results.push(await perform(page, step));
    bytes += results.at(-1)?.bytes?.byteLength ?? 0;
    if (bytes > FILES_BYTES_MAX)
      throw new DriveFailed(
        'command',
        `The files of all steps together are larger than ${FILES_BYTES_MAX / 1024 ** 2} MiB, which is the limit.`,
      );
  }
  return { ...(await pageFieldsOf(page, status)), results };
}

/**
 * Finds the field as a `fill` step does, and marks it with an attribute. Code outside the driver then removes the
 * attribute and types into the field.
 */
async function typeIntoField(
  page: Page,
  selector: string,
  requestTyping: (mark: string) => Promise<void>,
): Promise<StepResult> {
  const field = page.locator(selector).first();
  await field.waitFor({ state: 'visible' });
  const mark = `data-${randomBytes(16).toString('hex')}`;
  await field.evaluate((element, name) => Object(element).setAttribute(name, ''), mark);
  await requestTyping(mark);
  return { do: 'type' };
}

const isVisualCapture = (step: Step): step is Extract<Step, { do: 'take' }> =>
  step.do === 'take' && (step.wanted.kind === 'screenshot' || step.wanted.kind === 'pdf');

/** While a screenshot or PDF file is taken, hides text that was typed in earlier steps. */
async function whileCovered(help: Helper, captureStep: () => Promise<StepResult>): Promise<StepResult> {
  await help({ do: 'cover' });
  const stepResult = await captureStep().catch(async error => {
    await help({ do: 'uncover' }).catch(() => {}); // The error of the step is reported instead.
    throw error;
  });
  await help({ do: 'uncover' });
  return stepResult;
}

async function perform(page: Page, step: Exclude<Step, { do: 'goto' | 'type' }>): Promise<StepResult> {
  switch (step.do) {
    case 'take':
      return { do: step.do, ...(await captureContent(page, step.wanted)) };
    case 'waitFor':
      await page.locator(step.selector).first().waitFor({ state: step.state });
      break;
    case 'click':
      await page
        .locator(step.selector)
        .first()
        .click({ button: step.button, clickCount: step.double ? 2 : 1 });
      break;
    case 'fill':
      await page.locator(step.selector).first().fill(step.value);
      break;
    case 'select':
      await page
        .locator(step.selector)
        .first()
        .selectOption([...step.values]);
      break;
    case 'press':
      if (step.selector === undefined) await page.keyboard.press(step.key);
      else await page.locator(step.selector).first().press(step.key);
      break;
    case 'hover':
      await page.locator(step.selector).first().hover();
      break;
    case 'scroll':
      if (step.selector !== undefined) await page.locator(step.selector).first().scrollIntoViewIfNeeded();
      if (step.x !== 0 || step.y !== 0) await page.mouse.wheel(step.x, step.y);
      break;
    case 'upload':
      await page.locator(step.selector).first().setInputFiles(step.files.map(payloadOf));
      break;
    case 'sleep':
      await page.waitForTimeout(step.ms);
      break;
  }
  return { do: step.do };
}

const payloadOf = ({ name, mimeType, bytes }: FileContent) => ({ name, mimeType, buffer: Buffer.from(bytes) });

/**
 * Adds the number of the step to an error of the step. Other errors, such as a lost connection, may not have been
 * caused by the step and are returned unchanged.
 */
function withStepNumber(error: unknown, step: number, failedStep: Step | undefined): unknown {
  const why = error instanceof DriveFailed ? error.why : 'command';
  if (!STEP_FAILURES.has(why)) return error;
  const text = error instanceof Error ? error.message : 'An unknown error occurred.';
  const details = error instanceof DriveFailed ? error.details : {};
  const isTimeout = why === 'timeout' || text.includes('Timeout');
  return new DriveFailed(isTimeout ? 'timeout' : why, `Step ${step} (${failedStep?.do ?? 'unknown'}): ${text}`, {
    ...details,
    step,
  });
}
