// Tells the viewer in control that the shown page was opened by the page shown before, and offers a button to go back.
import { parts } from './parts.ts';

const NAME_CHARACTERS_MAX = 40;

export class Followed {
  readonly #nameOf: (page: string) => string;
  readonly #look: (page: string) => void;
  #way: { readonly page: string; readonly from: string } | undefined;
  #shown = '';

  constructor(nameOf: (page: string) => string, look: (page: string) => void) {
    this.#nameOf = nameOf;
    this.#look = look;
    parts.followedBack.addEventListener('click', () => {
      if (this.#way) this.#look(this.#way.from);
    });
  }

  opened(page: string, from: string): void {
    this.#way = { page, from };
    this.draw();
  }

  page(shown: string): void {
    this.#shown = shown;
    this.draw();
  }

  /** Must also be called when titles change. */
  draw(): void {
    const way = this.#way?.page === this.#shown ? this.#way : undefined;
    parts.followed.hidden = way === undefined;
    if (!way) return;
    const name = short(this.#nameOf(way.from));
    const text = 'This page was opened in a new tab.';
    if (parts.followedText.textContent !== text) parts.followedText.textContent = text;
    parts.followedBack.textContent = `Back to \u201c${name}\u201d`;
  }
}

const short = (name: string): string =>
  name.length > NAME_CHARACTERS_MAX ? `${name.slice(0, NAME_CHARACTERS_MAX - 1)}\u2026` : name;
