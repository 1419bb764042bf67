// Checks whether a page can be used without a mouse: presses Tab through the whole page, and compares the elements that
// get the focus with the controls of the page.
import type { Page } from 'playwright-core';

const PRESSES_MAX = 400;
/**
 * Number of presses sent together, because a round trip for each press takes longer than the press. Presses after the
 * end of the walk have no effect.
 */
const PRESSES_AT_ONCE = 20;
const TAB = { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 } as const;

export interface KeyboardFindings {
  /** Elements that can be used by mouse and are never focused. */
  readonly unreachable: readonly string[];
  /** Elements that do not show that they are focused. */
  readonly unmarked: readonly string[];
}

/** Walks through the page with Tab, from its top. Elements inside frames are not checked. */
export async function walkByKeyboard(page: Page): Promise<KeyboardFindings> {
  const findings = await walk(page, PRESSES_AT_ONCE);
  // On a busy machine the focus may move on before the script in the page has checked it. The walk is then repeated,
  // and each press is awaited.
  return findings.unreachable.length + findings.unmarked.length === 0 ? findings : walk(page, 1);
}

async function walk(page: Page, pressesAtOnce: number): Promise<KeyboardFindings> {
  const cdp = await page.context().newCDPSession(page);
  const press = (type: 'rawKeyDown' | 'keyUp') => cdp.send('Input.dispatchKeyEvent', { type, ...TAB });
  await page.evaluate(BEGIN_SCRIPT);
  for (let presses = 0; presses < PRESSES_MAX; presses += pressesAtOnce) {
    // The keys arrive in this order, because all of them go through one connection.
    await Promise.all(Array.from({ length: pressesAtOnce }, () => [press('rawKeyDown'), press('keyUp')]).flat());
    if (await page.evaluate<boolean>('globalThis.walk.isEnd')) break;
  }
  const unreachable = await page.evaluate<string[]>(UNREACHABLE_SCRIPT);
  const unmarked = await page.evaluate<string[]>('globalThis.walk.end()');
  await cdp.detach();
  return { unreachable, unmarked };
}

/**
 * Checks the focused element at each key-up of Tab, and when the window loses the focus to a frame, which then receives
 * the keys. The first Tab does not always focus the element at the top of the page, so the walk ends when it reaches
 * its first element again. After its last element, a page may have no focus for several presses, until the browser
 * returns the focus. The walk also ends if the focus does not return. A frame or a video counts as one stop, regardless
 * of how many of its elements get the focus.
 */
const BEGIN_SCRIPT = `(() => {
  document.activeElement?.blur?.();
  getSelection()?.removeAllRanges();
  const stops = new Set();
  const unmarked = new Set();
  let bodies = 0;
  const look = () => {
    const element = document.activeElement;
    const isFrame = element instanceof HTMLIFrameElement || element instanceof HTMLVideoElement;
    if (walk.isEnd) return;
    if (!element || element === document.body) {
      bodies += 1;
      walk.isEnd = bodies > ${PRESSES_AT_ONCE};
      return;
    }
    if (stops.has(element) && !isFrame) {
      walk.isEnd = true;
      return;
    }
    stops.add(element);
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
    const isMarked = isFrame || (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
    if (!isMarked) unmarked.add(element.outerHTML.slice(0, 200));
  };
  const leave = () => document.activeElement instanceof HTMLIFrameElement && look();
  const end = () => {
    removeEventListener('keyup', look, true);
    removeEventListener('blur', leave);
    return [...unmarked];
  };
  const walk = { stops, isEnd: false, end };
  globalThis.walk = walk;
  addEventListener('keyup', look, true);
  addEventListener('blur', leave);
})()`;

/** In a group of tabs or radio buttons the arrow keys move the focus, so reaching one of them is enough. */
const UNREACHABLE_SCRIPT = `(() => {
  const CONTROLS = 'a[href], button, input, select, textarea, summary, iframe, video[controls], [tabindex="0"]';
  const isShown = element =>
    element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 1 &&
    !element.closest('[aria-hidden="true"], [inert]');
  const isMoved = element =>
    (element.tabIndex < 0 && element.closest('[role="tablist"], [role="radiogroup"], [role="listbox"]')) ||
    (element instanceof HTMLInputElement && element.type === 'radio' && !element.checked);
  const controls = [...document.querySelectorAll(CONTROLS)]
    .filter(element => !element.disabled && isShown(element) && !isMoved(element) && !globalThis.walk.stops.has(element));
  const clickable = [...document.querySelectorAll('body *')].filter(element =>
    isShown(element) && getComputedStyle(element).cursor === 'pointer' &&
    !element.closest(CONTROLS + ', label, [role="option"]'));
  return [...controls, ...clickable].map(element => element.outerHTML.slice(0, 200));
})()`;
