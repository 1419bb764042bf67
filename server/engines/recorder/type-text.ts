// Types text into one field of a page, in an isolated world of the field's document. One function call in that document
// checks the origins and inserts the text, so no navigation can occur in between. If the document has been replaced,
// the call fails, because its world no longer exists.
import { isObject, type JsonObject } from '../../kit/json.ts';
import type { TargetChannel } from './channel.ts';
import { KEEP_FUNCTION } from './watch-fields.ts';

export interface TypingRequest {
  /** The name of the attribute that marks the field. The attribute is removed before the text is typed. */
  readonly mark: string;
  readonly text: string;
  /** The document of the field, and every document that contains it, must have one of these origins. */
  readonly origins: readonly string[];
}

/**
 * `refused`: an origin is not allowed. `origin` is this origin, or `none` if it is unknown. `not_a_field`: nothing can
 * be typed into the element. `read_only`: the field is disabled or read-only.
 */
export type TypingOutcome =
  | { readonly is: 'typed' | 'not_a_field' | 'read_only' }
  | { readonly is: 'refused'; readonly origin: string };

const REQUEST_TIMEOUT_MS = 5_000;
const ORIGIN_CHARACTERS_MAX = 300;

/** A function that finds the marked element. It also searches open shadow roots. */
const FIND_FUNCTION = `mark => {
  const search = root => {
    const found = root.querySelector('[' + mark + ']');
    if (found) return found;
    for (const element of root.querySelectorAll('*')) {
      const inner = element.shadowRoot && search(element.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  return search(document);
}`;

/**
 * A function that checks the origins and types the text. `self.origin` is the document's real origin even if the
 * document is sandboxed, has a URL copied from another document, or sets `document.domain`. The page's scripts run when
 * the field gets the focus, so the check is repeated after that. No script of the page runs between the last check and
 * the insertion by the setter. What scripts in an allowed document do afterwards is the responsibility of that origin.
 */
const TYPE_FUNCTION = `function (mark, text, origins) {
  const self = globalThis;
  const not = () => {
    if (!this.isConnected || this.ownerDocument !== self.document) return 'none';
    return [self.origin, ...self.location.ancestorOrigins].find(origin => !origins.includes(origin));
  };
  this.removeAttribute(mark);
  let wrong = not();
  if (wrong !== undefined) return { is: 'refused', origin: wrong };
  const isInput = this instanceof HTMLInputElement;
  if (!isInput && !(this instanceof HTMLTextAreaElement)) return { is: 'not_a_field' };
  if (isInput && !['text', 'password', 'email', 'tel', 'search', 'url', 'number'].includes(this.type)) return { is: 'not_a_field' };
  if (this.disabled || this.readOnly) return { is: 'read_only' };
  self.${KEEP_FUNCTION}(this);
  this.focus();
  wrong = not();
  if (wrong !== undefined) return { is: 'refused', origin: wrong };
  const { set } = Object.getOwnPropertyDescriptor(isInput ? HTMLInputElement.prototype : HTMLTextAreaElement.prototype, 'value');
  set.call(this, text);
  const event = { bubbles: true, composed: true };
  this.dispatchEvent(new InputEvent('input', { ...event, inputType: 'insertText' }));
  this.dispatchEvent(new Event('change', event));
  return { is: 'typed' };
}`;

/**
 * Types the text. Returns undefined if no element in this document has the mark, or if the document no longer exists.
 */
export async function typeText(
  channel: TargetChannel,
  contextId: number,
  watchScript: string,
  { mark, text, origins }: TypingRequest,
): Promise<TypingOutcome | undefined> {
  const expression = `${watchScript}; (${FIND_FUNCTION})(${JSON.stringify(mark)})`;
  const evaluation = await request(channel, 'Runtime.evaluate', { expression, contextId });
  const objectId = isObject(evaluation.result) ? evaluation.result.objectId : undefined;
  if (typeof objectId !== 'string') return undefined;
  const args = [mark, text, origins].map(value => ({ value }));
  const callResponse = await request(channel, 'Runtime.callFunctionOn', {
    ...{ objectId, functionDeclaration: TYPE_FUNCTION, arguments: args, returnByValue: true },
  });
  channel.post('Runtime.releaseObject', { objectId });
  return outcomeIn(isObject(callResponse.result) ? callResponse.result.value : undefined);
}

function outcomeIn(value: unknown): TypingOutcome | undefined {
  const { is, origin } = isObject(value) ? value : {};
  if (is === 'typed' || is === 'not_a_field' || is === 'read_only') return { is };
  if (is !== 'refused') return undefined;
  return { is, origin: typeof origin === 'string' ? origin.slice(0, ORIGIN_CHARACTERS_MAX).toWellFormed() : 'none' };
}

const request = (channel: TargetChannel, method: string, params: JsonObject): Promise<JsonObject> =>
  channel.send(method, params, REQUEST_TIMEOUT_MS).catch((): JsonObject => ({}));
