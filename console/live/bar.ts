// The bar above the live view: tabs, history, address. A viewer without control can only select which tab to watch,
// which does not change the active tab of the browser.
import type { ServerMessage, TabState } from '../../contract/live-messages.ts';
import { addressOf } from './address.ts';
import type { SendInput } from './input.ts';
import { ICONS, icon, parts } from './parts.ts';
import { type TabActions, TabStrip } from './tab-strip.ts';

type PageMessage = Extract<ServerMessage, { type: 'page' }>;

export interface BarActions extends TabActions {
  readonly forwardInput: SendInput;
}

export class Bar {
  readonly #tabStrip: TabStrip;
  readonly #icons = new Map<string, string>();
  #tabs: readonly TabState[] = [];
  #shownPage = '';
  #hasControl = false;
  #isLoading = false;

  constructor(actions: BarActions) {
    this.#tabStrip = new TabStrip(actions);
    parts.back.append(icon(ICONS.back));
    parts.forward.append(icon(ICONS.forward));
    parts.back.addEventListener('click', () => actions.forwardInput({ type: 'history', action: 'back' }));
    parts.forward.addEventListener('click', () => actions.forwardInput({ type: 'history', action: 'forward' }));
    parts.reload.addEventListener('click', () =>
      actions.forwardInput({ type: 'history', action: this.#isLoading ? 'stop' : 'reload' }),
    );
    // The address bar is not a form, because a sandboxed frame that contains this page may not allow forms.
    parts.url.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || event.isComposing) return;
      // The focus moves to the live view, which would otherwise get the Enter key.
      event.preventDefault();
      actions.forwardInput({ type: 'navigate', url: addressOf(parts.url.value.trim()) });
      parts.keyField.focus({ preventScroll: true });
    });
    parts.url.addEventListener('focus', () => parts.url.select());
    this.#drawReload();
  }

  setTabs(tabs: readonly TabState[]): void {
    this.#tabs = tabs;
    this.#draw();
  }

  nameOf(page: string): string {
    const tab = this.#tabs.find(one => one.page === page);
    return tab?.title || tab?.url || 'the first tab';
  }

  setIcon(url: string, data: string): void {
    this.#icons.set(url, data);
    this.#draw();
  }

  setPage(pageMessage: PageMessage): void {
    this.#shownPage = pageMessage.page;
    this.#isLoading = pageMessage.loading;
    parts.back.disabled = !this.#hasControl || !pageMessage.canGoBack;
    parts.forward.disabled = !this.#hasControl || !pageMessage.canGoForward;
    parts.reload.disabled = !this.#hasControl;
    this.#drawReload();
    this.#draw();
  }

  setControl(hasControl: boolean): void {
    this.#hasControl = hasControl;
    parts.url.readOnly = !hasControl;
    parts.reload.disabled = !hasControl;
    if (!hasControl) for (const button of [parts.back, parts.forward]) button.disabled = true;
    this.#draw();
  }

  #drawReload(): void {
    const name = this.#isLoading ? 'Stop' : 'Reload';
    parts.reload.replaceChildren(icon(this.#isLoading ? ICONS.stop : ICONS.reload));
    parts.reload.title = name;
    parts.reload.setAttribute('aria-label', name);
  }

  #draw(): void {
    const tab = this.#tabs.find(one => one.page === this.#shownPage);
    if (document.activeElement !== parts.url) parts.url.value = tab?.url ?? '';
    parts.behindNotice.hidden = tab?.visible !== false;
    document.title = tab?.title ? `${tab.title} - Live view` : 'Live view';
    this.#tabStrip.draw({
      tabs: this.#tabs,
      watchedPage: this.#shownPage,
      hasControl: this.#hasControl,
      icons: this.#icons,
    });
  }
}
