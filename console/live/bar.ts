// The bar above the picture: tabs, history, address. Whoever only watches may look at another tab, which moves nothing in the
// browser; the rest is for whoever is in control.
import type { ServerMessage, TabState } from '../../contract/live-messages.ts';
import { addressOf } from './address.ts';
import type { Do } from './input.ts';
import { ICONS, icon, parts } from './parts.ts';

type PageMessage = Extract<ServerMessage, { type: 'page' }>;

export interface BarWish {
  readonly do: Do;
  readonly look: (page: string) => void;
  readonly close: (page: string) => void;
  readonly newTab: () => void;
}

export class Bar {
  readonly #wish: BarWish;
  readonly #icons = new Map<string, string>();
  #tabs: readonly TabState[] = [];
  #shown = '';
  #driving = false;
  #loading = false;
  /** What the tabs were drawn from last. */
  #drawn = '';

  constructor(wish: BarWish) {
    this.#wish = wish;
    parts.back.append(icon(ICONS.back));
    parts.forward.append(icon(ICONS.forward));
    parts.back.addEventListener('click', () => wish.do({ type: 'history', action: 'back' }));
    parts.forward.addEventListener('click', () => wish.do({ type: 'history', action: 'forward' }));
    parts.reload.addEventListener('click', () =>
      wish.do({ type: 'history', action: this.#loading ? 'stop' : 'reload' }),
    );
    // No form: a frame that embeds this page need not allow any.
    parts.url.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || event.isComposing) return;
      // The focus moves below: without this the field that takes it would get the Enter, and with it the page.
      event.preventDefault();
      wish.do({ type: 'navigate', url: addressOf(parts.url.value.trim()) });
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
    parts.back.disabled = !this.#driving || !page.canGoBack;
    parts.forward.disabled = !this.#driving || !page.canGoForward;
    parts.reload.disabled = !this.#driving;
    this.#drawReload();
    this.#draw();
  }

  driving(on: boolean): void {
    this.#driving = on;
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

  /** Only where something has changed: a click on what is replaced between press and release is lost. */
  #drawTabs(): void {
    const shown = this.#tabs.map(({ page, title, url, faviconUrl }) => [page, title, url, this.#icons.has(faviconUrl)]);
    const drawn = JSON.stringify([shown, this.#shown, this.#driving]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    parts.tabs.replaceChildren(...this.#tabs.map(one => this.#tab(one)), ...(this.#driving ? [this.#newTab()] : []));
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
    pick.addEventListener('click', () => this.#wish.look(page));
    element.append(pick);
    if (this.#driving) element.append(this.#closer(page, name.textContent));
    return element;
  }

  #iconOf(url: string): HTMLElement[] {
    const data = this.#icons.get(url);
    if (data === undefined) return [];
    const image = document.createElement('img');
    image.alt = '';
    image.src = data;
    // What is no picture after all.
    image.addEventListener('error', () => image.remove());
    return [image];
  }

  #closer(page: string, name: string): HTMLElement {
    const close = document.createElement('button');
    close.type = 'button';
    close.className = 'close';
    close.textContent = '\u00d7';
    close.setAttribute('aria-label', `Close ${name}`);
    close.addEventListener('click', () => this.#wish.close(page));
    return close;
  }

  #newTab(): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'new';
    button.textContent = '+';
    button.setAttribute('aria-label', 'New tab');
    button.addEventListener('click', () => this.#wish.newTab());
    const element = document.createElement('li');
    element.append(button);
    return element;
  }
}
