// What we ask a page on behalf of a person who looks at it: in an isolated world, so that its own scripts see nothing of it.
// Answers are the page's and may be anything: each is read as hostile.
import type { SelectState } from '../../../contract/live-messages.ts';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import type { JsonObject } from '../sessions/machinery.ts';

const ASK_MS = 400;
const WORLD = 'berth-live';
const OPTIONS_MAX = 5_000;
const LABEL_CHARACTERS_MAX = 200;
const COPY_CHARACTERS_MAX = 1_000_000;

const CURSOR = `(x, y) => {
  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
  if (!element) return 'default';
  const { cursor } = getComputedStyle(element);
  if (cursor !== 'auto') return cursor.slice(0, 32);
  const typed = element.closest('input:not([type=button]):not([type=submit]):not([type=checkbox]):not([type=radio]), textarea');
  return typed || element.isContentEditable ? 'text' : 'default';
}`;

const FIND_SELECT = `(x, y) => {
  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
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

const CHOOSE = `function (index) {
  const option = this.options[index];
  if (!option || option.disabled || option.selected) return;
  option.selected = true;
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
}`;

const SELECTED = `() => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  const typed = active instanceof HTMLTextAreaElement || (active instanceof HTMLInputElement && active.type !== 'password');
  if (typed && active.selectionStart !== null) return active.value.slice(active.selectionStart, active.selectionEnd).slice(0, ${COPY_CHARACTERS_MAX});
  return String(getSelection() ?? '').slice(0, ${COPY_CHARACTERS_MAX});
}`;

const LISTEN = `() => {
  globalThis.taken = '';
  const hear = () => {
    globalThis.taken = (${SELECTED})();
  };
  for (const type of ['copy', 'cut']) addEventListener(type, hear, { capture: true, once: true });
}`;

export async function cursorAt(target: ObservedTarget, x: number, y: number): Promise<string | undefined> {
  const { value } = await ask(target, CURSOR, [x, y], true);
  return typeof value === 'string' && /^[a-z-]{1,20}$/.test(value) ? value : 'default';
}

/** What is selected at the moment at which the page copies or cuts, which `act` makes it do. */
export async function textTakenBy(target: ObservedTarget, act: () => Promise<unknown>): Promise<string> {
  await ask(target, LISTEN, [], true);
  await act();
  const { value } = await ask(target, '() => globalThis.taken', [], true);
  return typeof value === 'string' ? value.slice(0, COPY_CHARACTERS_MAX) : '';
}

/** The select that is there, focused; undefined where there is none, or the page does not answer in time. */
export async function askSelect(
  target: ObservedTarget,
  x: number,
  y: number,
): Promise<{ objectId: string; state: SelectState } | undefined> {
  const { objectId } = await ask(target, FIND_SELECT, [x, y], false);
  if (typeof objectId !== 'string') return undefined;
  const described = await call(target, objectId, DESCRIBE_SELECT, []);
  const state = selectOf(Object(described.value));
  return state && { objectId, state };
}

export async function chooseOptions(
  target: ObservedTarget,
  objectId: string,
  options: readonly number[],
): Promise<void> {
  for (const index of options) await call(target, objectId, CHOOSE, [index]);
  target.say('Runtime.releaseObject', { objectId });
}

function selectOf({ x, y, width, height, options }: Record<string, unknown>): SelectState | undefined {
  if (!Array.isArray(options)) return undefined;
  const text = (value: unknown): string => String(value ?? '').slice(0, LABEL_CHARACTERS_MAX);
  return {
    multiple: false,
    box: { x: Number(x) || 0, y: Number(y) || 0, width: Number(width) || 0, height: Number(height) || 0 },
    options: options.slice(0, OPTIONS_MAX).map(option => ({
      label: text(Object(option).label),
      group: text(Object(option).group),
      disabled: Object(option).disabled === true,
      chosen: Object(option).chosen === true,
    })),
  };
}

/** Calls a function in a world of ours in the main frame. What cannot be answered is an empty answer. */
async function ask(
  target: ObservedTarget,
  source: string,
  args: ReadonlyArray<number | string>,
  byValue: boolean,
  ms = ASK_MS,
): Promise<JsonObject> {
  try {
    const { frameTree } = await target.send('Page.getFrameTree', {}, ms);
    const frameId = String(Object(Object(frameTree).frame).id ?? '');
    const world = { frameId, worldName: WORLD, grantUniveralAccess: false };
    const { executionContextId } = await target.send('Page.createIsolatedWorld', world, ms);
    const { result } = await target.send(
      'Runtime.evaluate',
      {
        expression: `(${source})(${args.map(arg => JSON.stringify(arg)).join(', ')})`,
        contextId: executionContextId ?? null,
        returnByValue: byValue,
        timeout: ms,
      },
      ms,
    );
    return Object(result);
  } catch {
    return {};
  }
}

async function call(
  target: ObservedTarget,
  objectId: string,
  functionDeclaration: string,
  args: ReadonlyArray<number | string>,
): Promise<JsonObject> {
  try {
    const { result } = await target.send(
      'Runtime.callFunctionOn',
      { objectId, functionDeclaration, arguments: args.map(value => ({ value })), returnByValue: true },
      ASK_MS,
    );
    return Object(result);
  } catch {
    return {};
  }
}
