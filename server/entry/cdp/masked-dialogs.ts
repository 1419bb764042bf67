// Dialogs of pages in a masked hand-off. Clients are not notified of dialogs that open during the hand-off, because
// their text may repeat what a person typed. A page with an open dialog does not respond, so a client is notified of a
// dialog that is still open when the hand-off ends, but without the text of the dialog.
import { boundedText, parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject, textAt } from '../../kit/json.ts';
import { REDACTED_EVENT_BYTES_MAX } from './masked-events.ts';

const DIALOG_EVENT_PREFIX = '{"method":"Page.javascriptDialog';
const DIALOG_OPENING = 'Page.javascriptDialogOpening';
const URL_CHARS_MAX = 2_000;

export const isDialogEvent = (event: Buffer): boolean =>
  event.toString('latin1', 0, DIALOG_EVENT_PREFIX.length) === DIALOG_EVENT_PREFIX;

export class MaskedDialogs {
  /** The withheld opening event of each open dialog, by channel. A page shows one dialog at a time. */
  readonly #withheldEvents = new Map<string, Buffer>();

  /**
   * Returns the part of a dialog event that the client receives, if any. The client is notified of the end of a dialog
   * only if it was notified of its opening.
   */
  visiblePart(event: Buffer): Buffer | undefined {
    const message = event.length > REDACTED_EVENT_BYTES_MAX ? undefined : parseJson(event);
    if (!isObject(message) || !isObject(message.params)) return undefined;
    const { method, params } = message;
    const channel = textAt(message, 'sessionId') ?? '';
    if (method === DIALOG_OPENING) {
      this.#withheldEvents.set(channel, encode(message, withoutText(params)));
      return undefined;
    }
    if (this.#withheldEvents.delete(channel)) return undefined;
    return encode(message, { ...params, userInput: '' });
  }

  /** Removes and returns the withheld events of the dialogs that are still open. */
  take(): readonly Buffer[] {
    const openDialogEvents = [...this.#withheldEvents.values()];
    this.#withheldEvents.clear();
    return openDialogEvents;
  }
}

const withoutText = ({ url, frameId, type, hasBrowserHandler }: JsonObject): JsonObject => ({
  url: typeof url === 'string' ? boundedText(url, URL_CHARS_MAX) : '',
  ...(frameId === undefined ? {} : { frameId }),
  ...{ type: type ?? 'alert', hasBrowserHandler: hasBrowserHandler === true, message: '', defaultPrompt: '' },
});

/**
 * Replaces the parameters. `sessionId` stays the last member, as in Chromium's messages (engines/browser/messages.ts).
 */
const encode = (message: JsonObject, params: JsonObject): Buffer => Buffer.from(JSON.stringify({ ...message, params }));
