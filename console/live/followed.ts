// Tells the viewer in control that the shown page was opened by the page shown before, and offers a button to go back.
import { parts } from './parts.ts';

const NAME_CHARACTERS_MAX = 40;

export class OpenerNotice {
  readonly #nameOf: (page: string) => string;
  readonly #onBack: (page: string) => void;
  #opening: { readonly page: string; readonly from: string } | undefined;
  #shownPage = '';

  constructor(nameOf: (page: string) => string, onBack: (page: string) => void) {
    this.#nameOf = nameOf;
    this.#onBack = onBack;
    parts.followedBack.addEventListener('click', () => {
      if (this.#opening) this.#onBack(this.#opening.from);
    });
  }

  opened(page: string, from: string): void {
    this.#opening = { page, from };
    this.draw();
  }

  page(pageId: string): void {
    this.#shownPage = pageId;
    this.draw();
  }

  /** Must also be called when titles change. */
  draw(): void {
    const way = this.#opening?.page === this.#shownPage ? this.#opening : undefined;
    parts.followed.hidden = way === undefined;
    if (!way) return;
    const name = shortened(this.#nameOf(way.from));
    const text = 'This page was opened in a new tab.';
    if (parts.followedText.textContent !== text) parts.followedText.textContent = text;
    parts.followedBack.textContent = `Back to \u201c${name}\u201d`;
  }
}

const shortened = (name: string): string =>
  name.length > NAME_CHARACTERS_MAX ? `${name.slice(0, NAME_CHARACTERS_MAX - 1)}\u2026` : name;
