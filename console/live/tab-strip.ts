// The tabs above the live view. Each tab keeps its elements while it exists, because an element that is replaced or
// moved between mouse-down and mouse-up gets no click.
import type { TabState } from '../../contract/live-messages.ts';
import { parts } from './parts.ts';

export interface TabActions {
  readonly selectTab: (page: string) => void;
  readonly closeTab: (page: string) => void;
  readonly openNewTab: () => void;
}

export interface TabStripState {
  readonly tabs: readonly TabState[];
  /** The page whose frames are shown. */
  readonly watchedPage: string;
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
    const button = createButton('new', '+', () => actions.openNewTab());
    button.setAttribute('aria-label', 'New tab');
    this.#newTabItem.append(button);
    this.#newTabItem.hidden = true;
    parts.tabs.append(this.#newTabItem);
  }

  draw(state: TabStripState): void {
    const openPages = new Set(state.tabs.map(({ page }) => page));
    for (const [page, tab] of this.#tabs)
      if (!openPages.has(page)) {
        tab.element.remove();
        this.#tabs.delete(page);
      }
    for (const [index, tab] of state.tabs.entries()) this.#draw(tab, index, state);
    this.#newTabItem.hidden = !state.hasControl;
  }

  #draw(tab: TabState, index: number, { watchedPage, hasControl, icons }: TabStripState): void {
    const existingElement = this.#tabs.get(tab.page);
    const tabElement = existingElement ?? new TabElement(tab.page, this.#actions);
    if (!existingElement) this.#tabs.set(tab.page, tabElement);
    const elementAtIndex = parts.tabs.children[index] ?? null;
    if (elementAtIndex !== tabElement.element) parts.tabs.insertBefore(tabElement.element, elementAtIndex);
    tabElement.draw(tab, tab.page === watchedPage, hasControl, icons.get(tab.faviconUrl));
  }
}

class TabElement {
  readonly element = document.createElement('li');
  readonly #selectButton: HTMLButtonElement;
  readonly #closeButton: HTMLButtonElement;
  readonly #nameElement = document.createElement('span');
  readonly #iconElement = document.createElement('img');

  constructor(page: string, actions: TabActions) {
    this.element.className = 'tab';
    this.#selectButton = createButton('pick', '', () => actions.selectTab(page));
    this.#closeButton = createButton('close', '\u00d7', () => actions.closeTab(page));
    this.#iconElement.alt = '';
    this.#iconElement.hidden = true;
    // Hides the icon if its data is not a valid image.
    this.#iconElement.addEventListener('error', () => {
      this.#iconElement.hidden = true;
    });
    this.#selectButton.append(this.#iconElement, this.#nameElement);
    this.element.append(this.#selectButton, this.#closeButton);
  }

  draw({ title, url }: TabState, isShown: boolean, hasControl: boolean, icon: string | undefined): void {
    const name = title || url || 'New tab';
    this.element.classList.toggle('shown', isShown);
    this.#selectButton.setAttribute('aria-current', String(isShown));
    this.#selectButton.title = title ? `${title}\n${url}` : url;
    if (this.#nameElement.textContent !== name) this.#nameElement.textContent = name;
    this.#closeButton.hidden = !hasControl;
    this.#closeButton.setAttribute('aria-label', `Close ${name}`);
    this.#drawIcon(icon);
  }

  #drawIcon(data: string | undefined): void {
    if ((this.#iconElement.getAttribute('src') ?? undefined) === data) return;
    this.#iconElement.hidden = data === undefined;
    if (data === undefined) this.#iconElement.removeAttribute('src');
    else this.#iconElement.src = data;
  }
}

function createButton(className: string, text: string, onClick: () => void): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = className;
  button.textContent = text;
  button.addEventListener('click', onClick);
  return button;
}
