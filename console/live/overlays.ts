// Elements that the frames of a screencast do not contain: dialogs, the option lists of select elements, and file
// choosers.
import type { DialogState, SelectState } from '../../contract/live-messages.ts';
import type { FrameView } from './frame-view.ts';
import type { SendInput } from './input.ts';
import { parts } from './parts.ts';

export type Upload = (file: File) => Promise<string>;

export class Overlays {
  readonly #send: SendInput;
  readonly #view: FrameView;
  readonly #notify: (text: string) => void;
  readonly #upload: Upload;
  #selectedIndex = -1;

  constructor(view: FrameView, send: SendInput, upload: Upload, notify: (words: string) => void) {
    this.#view = view;
    this.#send = send;
    this.#upload = upload;
    this.#notify = notify;
    // The dialogs contain no forms, because a sandboxed frame that contains this page may not allow forms.
    for (const dialog of [parts.dialog, parts.filesDialog])
      for (const button of dialog.querySelectorAll('button'))
        button.addEventListener('click', () => dialog.close(button.value));
    parts.dialogAnswer.addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.isComposing) parts.dialog.close('ok');
    });
    parts.dialog.addEventListener('close', () => this.#onDialogClose());
    parts.filesDialog.addEventListener('close', () => void this.#uploadChosenFiles());
    parts.select.addEventListener('keydown', event => this.#onSelectKey(event));
    parts.select.addEventListener('click', event => this.#onSelectClick(event));
    parts.select.addEventListener('blur', () => this.#choose(undefined));
  }

  /** Shows the overlays of the page; `null` hides an overlay. Viewers without control get `null`. */
  show(dialog: DialogState | null, select: SelectState | null, files: 'one' | 'many' | null): void {
    this.#showDialog(dialog);
    this.#showSelect(select);
    this.#showFiles(files);
  }

  // ---- dialogs ---------------------------------------------------------------------------------------------------------

  #showDialog(state: DialogState | null): void {
    const { dialog, dialogText, dialogAnswer, dialogCancel } = parts;
    if (!state) {
      if (dialog.open) {
        dialog.dataset.byPage = '';
        dialog.close();
      }
      return;
    }
    if (dialog.open) return;
    delete dialog.dataset.byPage;
    dialog.returnValue = '';
    dialogText.textContent =
      state.kind === 'beforeunload' ? 'Leave this page? What you entered may be lost.' : state.message;
    dialogAnswer.hidden = state.kind !== 'prompt';
    dialogAnswer.value = state.answer;
    dialogCancel.hidden = state.kind === 'alert';
    dialog.showModal();
  }

  #onDialogClose(): void {
    if (parts.dialog.dataset.byPage !== undefined) return;
    this.#send({ type: 'dialog', accept: parts.dialog.returnValue === 'ok', text: parts.dialogAnswer.value });
  }

  // ---- select ----------------------------------------------------------------------------------------------------------

  #showSelect(state: SelectState | null): void {
    const { select } = parts;
    if (!state) {
      select.hidden = true;
      return;
    }
    if (!select.hidden) return;
    const box = this.#view.boxOf(state.box);
    let group = '';
    select.replaceChildren(
      ...state.options.flatMap((option, index) => {
        const heading = option.group !== group && option.group !== '' ? [groupElement(option.group)] : [];
        group = option.group;
        return [...heading, optionElement(option, index)];
      }),
    );
    select.hidden = false;
    select.style.minWidth = `${Math.max(120, box.width)}px`;
    const fitsBelow = innerHeight - box.bottom > Math.min(320, select.offsetHeight);
    select.style.left = `${Math.max(4, Math.min(box.left, innerWidth - select.offsetWidth - 4))}px`;
    select.style.top = fitsBelow ? `${box.bottom + 2}px` : `${Math.max(4, box.top - select.offsetHeight - 2)}px`;
    this.#goTo(state.options.findIndex(option => option.chosen));
    select.focus();
  }

  #onSelectKey(event: KeyboardEvent): void {
    event.preventDefault();
    event.stopPropagation();
    const options = this.#options();
    if (event.key === 'Escape' || event.key === 'Tab') return this.#choose(undefined);
    if (event.key === 'Enter' || event.key === ' ') return this.#choose(this.#selectedIndex);
    if (event.key === 'ArrowDown') this.#goTo(nextEnabledIndex(options, this.#selectedIndex, 1));
    else if (event.key === 'ArrowUp') this.#goTo(nextEnabledIndex(options, this.#selectedIndex, -1));
    else if (event.key === 'Home') this.#goTo(nextEnabledIndex(options, -1, 1));
    else if (event.key === 'End') this.#goTo(nextEnabledIndex(options, options.length, -1));
    else if (event.key.length === 1) {
      const matchIndex = options.findIndex(
        (option, index) =>
          index > this.#selectedIndex && option.textContent?.toLowerCase().startsWith(event.key.toLowerCase()),
      );
      if (matchIndex >= 0) this.#goTo(matchIndex);
    }
  }

  #onSelectClick({ target }: MouseEvent): void {
    const option = target instanceof Element ? target.closest('[role="option"]') : null;
    if (option && option.getAttribute('aria-disabled') !== 'true') this.#choose(this.#options().indexOf(option));
  }

  #goTo(index: number): void {
    this.#selectedIndex = index;
    for (const [optionIndex, option] of this.#options().entries()) {
      option.classList.toggle('at', optionIndex === index);
      option.setAttribute('aria-selected', String(optionIndex === index));
      if (optionIndex === index) option.scrollIntoView({ block: 'nearest' });
    }
  }

  #choose(index: number | undefined): void {
    if (parts.select.hidden) return;
    parts.select.hidden = true;
    this.#send({ type: 'choose', options: index === undefined || index < 0 ? [] : [index] });
    parts.keyField.focus({ preventScroll: true });
  }

  #options(): Element[] {
    return [...parts.select.querySelectorAll('[role="option"]')];
  }

  // ---- files -----------------------------------------------------------------------------------------------------------

  #showFiles(mode: 'one' | 'many' | null): void {
    const { filesDialog } = parts;
    if (!mode) {
      if (!filesDialog.open) return;
      filesDialog.dataset.byPage = '';
      filesDialog.close();
      return;
    }
    if (filesDialog.open) return;
    delete filesDialog.dataset.byPage;
    parts.filesInput.value = '';
    parts.filesInput.multiple = mode === 'many';
    parts.filesDialog.returnValue = '';
    parts.filesDialog.showModal();
  }

  async #uploadChosenFiles(): Promise<void> {
    if (parts.filesDialog.dataset.byPage !== undefined) return;
    const chosenFiles = parts.filesDialog.returnValue === 'ok' ? [...(parts.filesInput.files ?? [])] : [];
    try {
      const names: string[] = [];
      for (const file of chosenFiles) names.push(await this.#upload(file));
      this.#send({ type: 'files', names });
    } catch (error) {
      this.#send({ type: 'files', names: [] });
      this.#notify(error instanceof Error ? error.message : 'The file could not be uploaded. Choose it again.');
    }
  }
}

function optionElement(option: SelectState['options'][number], index: number): HTMLElement {
  const element = document.createElement('div');
  element.role = 'option';
  element.id = `option-${index}`;
  element.textContent = option.label || '\u00a0';
  if (option.disabled) element.setAttribute('aria-disabled', 'true');
  return element;
}

function groupElement(name: string): HTMLElement {
  const element = document.createElement('div');
  element.className = 'group';
  element.role = 'presentation';
  element.textContent = name;
  return element;
}

/** Returns the index of the next enabled option in the direction of `step`, or `from` if there is none. */
function nextEnabledIndex(options: readonly Element[], from: number, step: 1 | -1): number {
  for (let index = from + step; index >= 0 && index < options.length; index += step)
    if (options[index]?.getAttribute('aria-disabled') !== 'true') return index;
  return from;
}
