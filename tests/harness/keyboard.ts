// What a page offers to people who use no mouse: presses Tab through the whole page and compares with what is there.
import type { Page } from 'playwright-core';

const PRESSES_MAX = 400;

export interface KeyboardFindings {
  /** Elements that can be used by mouse and are never focused. */
  readonly unreachable: readonly string[];
  /** Elements that do not show that they are focused. */
  readonly unmarked: readonly string[];
}

/** Starts at the top of the page. Elements inside of frames are not looked at. */
export async function walkByKeyboard(page: Page): Promise<KeyboardFindings> {
  await page.evaluate(BEGIN);
  const unmarked = new Set<string>();
  for (let press = 0; press < PRESSES_MAX; press += 1) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate<{ isEnd: boolean; unmarked?: string }>(STOP);
    if (stop.unmarked !== undefined) unmarked.add(stop.unmarked);
    if (stop.isEnd) break;
  }
  return { unreachable: await page.evaluate<string[]>(UNREACHABLE), unmarked: [...unmarked] };
}

const BEGIN = `(() => {
  document.activeElement?.blur?.();
  getSelection()?.removeAllRanges();
  globalThis.stops = new Set();
  globalThis.rounds = 0;
})()`;

/** The end is the first element again, or the body twice, as the first Tab need not be at the top of the page. A frame or a video is a stop for each element in it. */
const STOP = `(() => {
  const element = document.activeElement;
  const { stops } = globalThis;
  const isFrame = element instanceof HTMLIFrameElement || element instanceof HTMLVideoElement;
  if (!element || element === document.body) {
    globalThis.rounds += 1;
    return { isEnd: globalThis.rounds > 2 };
  }
  if (stops.has(element) && !isFrame) return { isEnd: true };
  stops.add(element);
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
  const isMarked = isFrame || (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
  return { isEnd: false, ...(isMarked ? {} : { unmarked: element.outerHTML.slice(0, 200) }) };
})()`;

/** In a group of tabs or radio buttons the arrow keys move, so one of them is enough. */
const UNREACHABLE = `(() => {
  const CONTROLS = 'a[href], button, input, select, textarea, summary, iframe, video[controls], [tabindex="0"]';
  const isShown = element =>
    element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 1 &&
    !element.closest('[aria-hidden="true"], [inert]');
  const isMoved = element =>
    (element.tabIndex < 0 && element.closest('[role="tablist"], [role="radiogroup"], [role="listbox"]')) ||
    (element instanceof HTMLInputElement && element.type === 'radio' && !element.checked);
  const controls = [...document.querySelectorAll(CONTROLS)]
    .filter(element => !element.disabled && isShown(element) && !isMoved(element) && !globalThis.stops.has(element));
  const clickable = [...document.querySelectorAll('body *')].filter(element =>
    isShown(element) && getComputedStyle(element).cursor === 'pointer' &&
    !element.closest(CONTROLS + ', label, [role="option"]'));
  return [...controls, ...clickable].map(element => element.outerHTML.slice(0, 200));
})()`;
