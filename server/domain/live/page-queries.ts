// Functions that run in a page on behalf of a viewer: in the frame under the mouse, or for the selected text.
import type { SelectState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import { boundedText } from '../../kit/foreign.ts';
import type { PageWorlds } from './page-worlds.ts';

const OPTIONS_MAX = 5_000;
const LABEL_CHARACTERS_MAX = 200;
const COPY_CHARACTERS_MAX = 1_000_000;

/**
 * Finds the element at a point. If the element is a frame, returns it; the function is then called again inside that
 * frame.
 */
const ELEMENT_AT_POINT = `  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
  if (element instanceof HTMLIFrameElement || element instanceof HTMLFrameElement) return element;`;

const GET_CURSOR = `(x, y) => {
${ELEMENT_AT_POINT}
  if (!element) return 'default';
  const { cursor } = getComputedStyle(element);
  if (cursor !== 'auto') return cursor.slice(0, 32);
  const typed = element.closest('input:not([type=button]):not([type=submit]):not([type=checkbox]):not([type=radio]), textarea');
  return typed || element.isContentEditable ? 'text' : 'default';
}`;

const FIND_SELECT = `(x, y) => {
${ELEMENT_AT_POINT}
  const select = element?.closest('select');
  return select && !select.disabled && !select.multiple && select.size <= 1 ? select : null;
}`;

const DESCRIBE_SELECT = `function () {
  this.focus();
  const { x, y, width, height } = this.getBoundingClientRect();
  const options = [...this.options].slice(0, ${OPTIONS_MAX}).map(option => ({
    label: (option.label || option.text).slice(0, ${LABEL_CHARACTERS_MAX}),
    group: (option.parentElement?.localName === 'optgroup' ? option.parentElement.label : '').slice(0, ${LABEL_CHARACTERS_MAX}),
    disabled: option.disabled || (option.parentElement?.localName === 'optgroup' && option.parentElement.disabled),
    chosen: option.selected,
  }));
  return { x, y, width, height, options };
}`;

const CHOOSE_OPTION = `function (index) {
  const option = this.options[index];
  if (!option || option.disabled || option.selected) return;
  option.selected = true;
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
}`;

const GET_SELECTED_TEXT = `() => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  const typed = active instanceof HTMLTextAreaElement || (active instanceof HTMLInputElement && active.type !== 'password');
  if (typed && active.selectionStart !== null) return active.value.slice(active.selectionStart, active.selectionEnd).slice(0, ${COPY_CHARACTERS_MAX});
  return String(getSelection() ?? '').slice(0, ${COPY_CHARACTERS_MAX});
}`;

const LISTEN_FOR_COPY = `() => {
  globalThis.taken = '';
  globalThis.hear ??= () => {
    globalThis.taken = (${GET_SELECTED_TEXT})();
  };
  for (const type of ['copy', 'cut']) addEventListener(type, globalThis.hear, { capture: true, once: true });
}`;

export async function cursorAt(worlds: PageWorlds, x: number, y: number): Promise<string> {
  const { value } = (await worlds.callAtPoint(GET_CURSOR, x, y)).found;
  return typeof value === 'string' && /^[a-z-]{1,20}$/.test(value) ? value : 'default';
}

/** Returns the text that is selected when the page handles the copy or cut event that `trigger` causes. */
export async function readCopiedText(worlds: PageWorlds, trigger: () => Promise<unknown>): Promise<string> {
  const frames = await worlds.frames();
  await Promise.all(frames.map(frame => worlds.callInFrame(frame, LISTEN_FOR_COPY, [], true)));
  await trigger();
  const copyResults = await Promise.all(
    frames.map(frame => worlds.callInFrame(frame, '() => globalThis.taken', [], true)),
  );
  const text = copyResults.map(({ value }) => (typeof value === 'string' ? value : '')).find(copied => copied !== '');
  return (text ?? '').slice(0, COPY_CHARACTERS_MAX);
}

export interface FoundSelect {
  readonly target: ObservedTarget;
  readonly objectId: string;
  readonly state: SelectState;
}

/**
 * Focuses and describes the `select` element at a point. Undefined if there is no such element, or if the page does not
 * respond in time.
 */
export async function focusSelect(worlds: PageWorlds, x: number, y: number): Promise<FoundSelect | undefined> {
  const { frame, found, corner } = await worlds.callAtPoint(FIND_SELECT, x, y);
  const { objectId } = found;
  if (typeof objectId !== 'string') return undefined;
  const descriptionResult = await worlds.call(frame.target, objectId, DESCRIBE_SELECT, []);
  const state = selectOf(Object(descriptionResult.value));
  if (!state) return undefined;
  const box = { ...state.box, x: state.box.x + corner.x, y: state.box.y + corner.y };
  return { target: frame.target, objectId, state: { ...state, box } };
}

export async function chooseOptions(
  worlds: PageWorlds,
  { target, objectId }: FoundSelect,
  options: readonly number[],
): Promise<void> {
  for (const index of options) await worlds.call(target, objectId, CHOOSE_OPTION, [index]);
  target.post('Runtime.releaseObject', { objectId });
}

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

function selectOf({ x, y, width, height, options }: Record<string, unknown>): SelectState | undefined {
  if (!Array.isArray(options)) return undefined;
  const text = (value: unknown): string => (typeof value === 'string' ? boundedText(value, LABEL_CHARACTERS_MAX) : '');
  return {
    multiple: false,
    box: { x: numberOf(x), y: numberOf(y), width: numberOf(width), height: numberOf(height) },
    options: options.slice(0, OPTIONS_MAX).map(option => ({
      label: text(Object(option).label),
      group: text(Object(option).group),
      disabled: Object(option).disabled === true,
      chosen: Object(option).chosen === true,
    })),
  };
}
