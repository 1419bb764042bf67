// The bar above the picture: tabs, history, address. A viewer without control can only select which tab to watch, which does
// not change the tab of the browser.
import type { ServerMessage, TabState } from '../../contract/live-messages.ts';
import { addressOf } from './address.ts';
import type { SendInput } from './input.ts';
import { ICONS, icon, parts } from './parts.ts';

type PageMessage = Extract<ServerMessage, { type: 'page' }>;

export interface BarActions {
  readonly do: SendInput;
  readonly look: (page: string) => void;
  readonly close: (page: string) => void;
  readonly newTab: () => void;
}

export class Bar {
  readonly #actions: BarActions;
  readonly #icons = new Map<string, string>();
  #tabs: readonly TabState[] = [];
  #shown = '';
  #hasControl = false;
  #loading = false;
  /** The state that the tabs were last drawn from. */
  #drawn = '';

  constructor(actions: BarActions) {
    this.#actions = actions;
    parts.back.append(icon(ICONS.back));
    parts.forward.append(icon(ICONS.forward));
    parts.back.addEventListener('click', () => actions.do({ type: 'history', action: 'back' }));
    parts.forward.addEventListener('click', () => actions.do({ type: 'history', action: 'forward' }));
    parts.reload.addEventListener('click', () =>
      actions.do({ type: 'history', action: this.#loading ? 'stop' : 'reload' }),
    );
    // Not a form, because frames that embed this page may not allow forms.
    parts.url.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || event.isComposing) return;
      // The focus moves to the picture, which would otherwise get the Enter key.
      event.preventDefault();
      actions.do({ type: 'navigate', url: addressOf(parts.url.value.trim()) });
      parts.keys.focus({ preventScroll: true });
    });
    parts.url.addEventListener('focus', () => parts.url.select());
    this.#drawReload();
  }

  tabs(tabs: readonly TabState[]): void {
    this.#tabs = tabs;
    this.#draw();
  }

  icon(url: string, data: string): void {
    this.#icons.set(url, data);
    this.#draw();
  }

  page(page: PageMessage): void {
    this.#shown = page.page;
    this.#loading = page.loading;
    parts.back.disabled = !this.#hasControl || !page.canGoBack;
    parts.forward.disabled = !this.#hasControl || !page.canGoForward;
    parts.reload.disabled = !this.#hasControl;
    this.#drawReload();
    this.#draw();
  }

  setControl(on: boolean): void {
    this.#hasControl = on;
    parts.url.readOnly = !on;
    parts.reload.disabled = !on;
    if (!on) for (const button of [parts.back, parts.forward]) button.disabled = true;
    this.#draw();
  }

  #drawReload(): void {
    const name = this.#loading ? 'Stop' : 'Reload';
    parts.reload.replaceChildren(icon(this.#loading ? ICONS.stop : ICONS.reload));
    parts.reload.title = name;
    parts.reload.setAttribute('aria-label', name);
  }

  #draw(): void {
    const tab = this.#tabs.find(one => one.page === this.#shown);
    if (document.activeElement !== parts.url) parts.url.value = tab?.url ?? '';
    parts.behind.hidden = tab?.visible !== false;
    document.title = tab?.title ? `${tab.title} - Live view` : 'Live view';
    this.#drawTabs();
  }

  /** Redraws only after a change: replacing an element between press and release would lose the click. */
  #drawTabs(): void {
    const shown = this.#tabs.map(({ page, title, url, faviconUrl }) => [page, title, url, this.#icons.has(faviconUrl)]);
    const drawn = JSON.stringify([shown, this.#shown, this.#hasControl]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    parts.tabs.replaceChildren(...this.#tabs.map(one => this.#tab(one)), ...(this.#hasControl ? [this.#newTab()] : []));
  }

  #tab({ page, title, url, faviconUrl }: TabState): HTMLElement {
    const element = document.createElement('li');
    element.className = 'tab';
    element.classList.toggle('shown', page === this.#shown);
    const pick = document.createElement('button');
    pick.type = 'button';
    pick.className = 'pick';
    pick.setAttribute('aria-current', String(page === this.#shown));
    const name = document.createElement('span');
    name.textContent = title || url || 'New tab';
    pick.title = url;
    pick.append(...this.#iconOf(faviconUrl), name);
    pick.addEventListener('click', () => this.#actions.look(page));
    element.append(pick);
    if (this.#hasControl) element.append(this.#closer(page, name.textContent));
    return element;
  }

  #iconOf(url: string): HTMLElement[] {
    const data = this.#icons.get(url);
    if (data === undefined) return [];
    const image = document.createElement('img');
    image.alt = '';
    image.src = data;
    // The data is not a valid image.
    image.addEventListener('error', () => image.remove());
    return [image];
  }

  #closer(page: string, name: string): HTMLElement {
    const close = document.createElement('button');
    close.type = 'button';
    close.className = 'close';
    close.textContent = '\u00d7';
    close.setAttribute('aria-label', `Close ${name}`);
    close.addEventListener('click', () => this.#actions.close(page));
    return close;
  }

  #newTab(): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'new';
    button.textContent = '+';
    button.setAttribute('aria-label', 'New tab');
    button.addEventListener('click', () => this.#actions.newTab());
    const element = document.createElement('li');
    element.append(button);
    return element;
  }
}
