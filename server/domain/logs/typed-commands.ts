// The commands that type text into a page or pass text to it, whether a client sends them or the live view.
import { scanExpression } from './expression.ts';
import type { TypedText } from './typed-text.ts';
import { numberAt, textAt, type UntrustedObject } from './values.ts';

/** Commands that are parsed even if they are not logged, because the text that they type is redacted in other entries. */
export const TYPING_COMMANDS: ReadonlySet<string> = new Set([
  'Input.insertText',
  'Input.dispatchKeyEvent',
  'Input.imeSetComposition',
  'Runtime.callFunctionOn',
  'Page.handleJavaScriptDialog',
]);

/** Bits of `modifiers`: Alt, Control and Meta. With one of them, a key is a shortcut. */
const SHORTCUT_MODIFIERS = 1 | 2 | 4;
/** Keys that neither type nor move the cursor. */
const NEUTRAL_KEY =
  /^(?:Shift|Control|Alt|AltGraph|Meta|CapsLock|NumLock|ScrollLock|Fn|Dead|Process|Compose|Unidentified|Escape|PageUp|PageDown|ContextMenu|PrintScreen|Pause|F\d+)?$/;
/** Shortcuts that copy or save, so they neither change the text nor move the cursor. */
const NEUTRAL_SHORTCUT = /^[cs]$/i;

/**
 * `targetIds`: the target that receives the command, and the pages and frames that contain it. What is typed into the
 * same target forms words and lines. Keys for a frame are sent to its page.
 */
export function rememberTyped(
  typedText: TypedText,
  method: string,
  targetIds: readonly string[],
  params: UntrustedObject,
): void {
  const [target = ''] = targetIds;
  const endWords = (): void => targetIds.forEach(id => void typedText.endWord(id));
  switch (method) {
    case 'Input.insertText':
      return typedText.insertText(target, textAt(params, 'text') ?? '');
    case 'Input.imeSetComposition':
      return typedText.compose(target, textAt(params, 'text') ?? '');
    case 'Input.dispatchKeyEvent':
      return rememberKey(typedText, target, params);
    case 'Runtime.callFunctionOn':
      endWords();
      return typedText.rememberPassed(params.arguments);
    case 'Input.dispatchMouseEvent':
    case 'Input.dispatchTouchEvent':
      return endWords();
    case 'Page.handleJavaScriptDialog':
      return params.accept === true ? typedText.rememberText(textAt(params, 'promptText') ?? '') : undefined;
    case 'Runtime.evaluate':
      endWords();
      return typedText.rememberPassed(scanExpression(textAt(params, 'expression') ?? '').literals);
  }
}

function rememberKey(typedText: TypedText, target: string, params: UntrustedObject): void {
  if (params.type === 'keyUp') return;
  const text = textAt(params, 'text') ?? '';
  const key = textAt(params, 'key') ?? '';
  const isShortcut = ((numberAt(params, 'modifiers') ?? 0) & SHORTCUT_MODIFIERS) !== 0;
  if (text === '\r' || text === '\n') return typedText.endField(target);
  if (text !== '') return typedText.addText(target, text);
  if (key === 'Backspace' && !isShortcut) return typedText.removeCharacter(target);
  if (NEUTRAL_KEY.test(key) || (isShortcut && NEUTRAL_SHORTCUT.test(key))) return;
  // A key of one character without text: the client sends the text in an event of its own.
  if ([...key].length === 1 && !isShortcut) return;
  if (key === 'Enter' || key === 'Tab') return typedText.endField(target);
  // What follows may be typed at another position, or replace what is selected.
  typedText.endWord(target);
}
