// The commands that type text into a page or pass text to it, whether a client sends them or the live view.
import { scanExpression } from './expression.ts';
import type { TypedText } from './typed-text.ts';
import { textAt, type UntrustedObject } from './values.ts';

/** Commands that are parsed even if they are not logged, because the text that they type is redacted in other entries. */
export const TYPING_COMMANDS: ReadonlySet<string> = new Set([
  'Input.insertText',
  'Input.dispatchKeyEvent',
  'Input.imeSetComposition',
  'Runtime.callFunctionOn',
  'Page.handleJavaScriptDialog',
]);

/** `target`: the target that receives the command. Characters that are typed into the same target form words. */
export function rememberTyped(typedText: TypedText, method: string, target: string, params: UntrustedObject): void {
  switch (method) {
    case 'Input.insertText':
    case 'Input.imeSetComposition':
      return rememberInsertedText(typedText, target, textAt(params, 'text') ?? '');
    case 'Input.dispatchKeyEvent':
      return rememberKey(typedText, target, params);
    case 'Runtime.callFunctionOn':
      typedText.endWord(target);
      return typedText.rememberPassed(params.arguments);
    case 'Input.dispatchMouseEvent':
    case 'Input.dispatchTouchEvent':
      return typedText.endWord(target);
    case 'Page.handleJavaScriptDialog':
      return typedText.rememberText(textAt(params, 'promptText') ?? '');
    case 'Runtime.evaluate':
      typedText.endWord(target);
      return typedText.rememberPassed(scanExpression(textAt(params, 'expression') ?? '').literals);
  }
}

/** Remembers inserted text. Some clients insert text one character at a time. */
function rememberInsertedText(typedText: TypedText, target: string, text: string): void {
  if ([...text].length === 1) return typedText.addCharacter(target, text);
  typedText.endWord(target);
  typedText.rememberText(text);
}

function rememberKey(typedText: TypedText, target: string, params: UntrustedObject): void {
  if (params.type === 'keyUp') return;
  const text = textAt(params, 'text') ?? '';
  const key = textAt(params, 'key') ?? '';
  if (text !== '' && text !== '\r') typedText.addCharacter(target, text);
  else if (key === 'Backspace') typedText.removeCharacter(target);
  else if (key === 'Enter' || key === 'Tab') typedText.endField(target);
}
