// Downloads that are offered to the viewer, each with a link, until the viewer dismisses them.
import type { ServerMessage } from '../../contract/live-messages.ts';
import { parts } from './parts.ts';

/**
 * If there are more downloads, the oldest one is removed from view. The session's list of downloads contains all of
 * them.
 */
const DOWNLOADS_SHOWN_MAX = 3;
const UNITS = ['bytes', 'KB', 'MB', 'GB'] as const;

export class Downloads {
  offer({ name, size, url }: Extract<ServerMessage, { type: 'download' }>): void {
    const item = document.createElement('li');
    const nameElement = document.createElement('span');
    nameElement.className = 'name';
    nameElement.textContent = name;
    nameElement.title = name;
    const sizeElement = document.createElement('span');
    sizeElement.className = 'size';
    sizeElement.textContent = sizeWords(size);
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.textContent = 'Save';
    link.setAttribute('aria-label', `Save ${name}`);
    const dismissButton = document.createElement('button');
    dismissButton.type = 'button';
    dismissButton.textContent = '\u00d7';
    dismissButton.setAttribute('aria-label', `Dismiss ${name}`);
    dismissButton.addEventListener('click', () => item.remove());
    item.append(nameElement, sizeElement, link, dismissButton);
    parts.downloads.append(item);
    while (parts.downloads.children.length > DOWNLOADS_SHOWN_MAX) parts.downloads.firstElementChild?.remove();
  }
}

function sizeWords(bytes: number): string {
  const unitIndex = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const amount = bytes / 1000 ** unitIndex;
  return `${unitIndex > 0 && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unitIndex]}`;
}
