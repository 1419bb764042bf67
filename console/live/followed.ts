// Tells the viewer in control that the previously shown page opened the page that is shown now, and offers a button to
// go back.
import { parts } from './parts.ts';

const NAME_CHARACTERS_MAX = 40;

export class OpenerNotice {
  readonly #nameOf: (page: string) => string;
  readonly #onBack: (page: string) => void;
  #opener: { readonly page: string; readonly openerPage: string } | undefined;
  #shownPage = '';

  constructor(nameOf: (page: string) => string, onBack: (page: string) => void) {
    this.#nameOf = nameOf;
    this.#onBack = onBack;
    parts.openerBackButton.addEventListener('click', () => {
      if (this.#opener) this.#onBack(this.#opener.openerPage);
    });
  }

  setOpener(page: string, openerId: string): void {
    this.#opener = { page, openerPage: openerId };
    this.draw();
  }

  setPage(pageId: string): void {
    this.#shownPage = pageId;
    this.draw();
  }

  /** Must also be called when titles change. */
  draw(): void {
    const shownOpener = this.#opener?.page === this.#shownPage ? this.#opener : undefined;
    parts.openerNotice.hidden = shownOpener === undefined;
    if (!shownOpener) return;
    const name = shorten(this.#nameOf(shownOpener.openerPage));
    const text = 'This page was opened in a new tab.';
    if (parts.openerText.textContent !== text) parts.openerText.textContent = text;
    parts.openerBackButton.textContent = `Back to \u201c${name}\u201d`;
  }
}

const shorten = (name: string): string =>
  name.length > NAME_CHARACTERS_MAX ? `${name.slice(0, NAME_CHARACTERS_MAX - 1)}\u2026` : name;
