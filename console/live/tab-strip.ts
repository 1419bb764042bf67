// The tabs above the live view. Each tab keeps its elements while it exists, because an element that is replaced or
// moved between mouse-down and mouse-up gets no click.
import type { TabState } from '../../contract/live-messages.ts';
import { parts } from './parts.ts';

export interface TabActions {
  readonly look: (page: string) => void;
  readonly close: (page: string) => void;
  readonly newTab: () => void;
}

export interface TabStripState {
  readonly tabs: readonly TabState[];
  /** The page whose frames are shown. */
  readonly shown: string;
  readonly hasControl: boolean;
  /** Icons as data URLs, by the address of the icon. */
  readonly icons: ReadonlyMap<string, string>;
}

export class TabStrip {
  readonly #actions: TabActions;
  readonly #tabs = new Map<string, TabElement>();
  readonly #newTabItem = document.createElement('li');

  constructor(actions: TabActions) {
    this.#actions = actions;
    const button = createButton('new', '+', () => actions.newTab());
    button.setAttribute('aria-label', 'New tab');
    this.#newTabItem.append(button);
    this.#newTabItem.hidden = true;
    parts.tabs.append(this.#newTabItem);
  }

  draw(state: TabStripState): void {
    const open = new Set(state.tabs.map(({ page }) => page));
    for (const [page, tab] of this.#tabs)
      if (!open.has(page)) {
        tab.element.remove();
        this.#tabs.delete(page);
      }
    for (const [index, tab] of state.tabs.entries()) this.#draw(tab, index, state);
    this.#newTabItem.hidden = !state.hasControl;
  }

  #draw(tab: TabState, index: number, { shown, hasControl, icons }: TabStripState): void {
    const known = this.#tabs.get(tab.page);
    const drawn = known ?? new TabElement(tab.page, this.#actions);
    if (!known) this.#tabs.set(tab.page, drawn);
    const there = parts.tabs.children[index] ?? null;
    if (there !== drawn.element) parts.tabs.insertBefore(drawn.element, there);
    drawn.draw(tab, tab.page === shown, hasControl, icons.get(tab.faviconUrl));
  }
}

class TabElement {
  readonly element = document.createElement('li');
  readonly #pick: HTMLButtonElement;
  readonly #close: HTMLButtonElement;
  readonly #name = document.createElement('span');
  readonly #image = document.createElement('img');

  constructor(page: string, actions: TabActions) {
    this.element.className = 'tab';
    this.#pick = createButton('pick', '', () => actions.look(page));
    this.#close = createButton('close', '\u00d7', () => actions.close(page));
    this.#image.alt = '';
    this.#image.hidden = true;
    // Hides the icon if its data is not a valid image.
    this.#image.addEventListener('error', () => {
      this.#image.hidden = true;
    });
    this.#pick.append(this.#image, this.#name);
    this.element.append(this.#pick, this.#close);
  }

  draw({ title, url }: TabState, isShown: boolean, hasControl: boolean, icon: string | undefined): void {
    const name = title || url || 'New tab';
    this.element.classList.toggle('shown', isShown);
    this.#pick.setAttribute('aria-current', String(isShown));
    this.#pick.title = title ? `${title}\n${url}` : url;
    if (this.#name.textContent !== name) this.#name.textContent = name;
    this.#close.hidden = !hasControl;
    this.#close.setAttribute('aria-label', `Close ${name}`);
    this.#drawIcon(icon);
  }

  #drawIcon(data: string | undefined): void {
    if ((this.#image.getAttribute('src') ?? undefined) === data) return;
    this.#image.hidden = data === undefined;
    if (data === undefined) this.#image.removeAttribute('src');
    else this.#image.src = data;
  }
}

function createButton(className: string, text: string, press: () => void): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = className;
  button.textContent = text;
  button.addEventListener('click', press);
  return button;
}
