// The colour theme: light, dark or system. Only an explicit choice is stored.
import { localStore } from '../api/storage.ts';

export type Theme = 'system' | 'light' | 'dark';

const STORED = 'berth.theme';

export function storedTheme(): Theme {
  const stored = localStore.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    localStore.removeItem(STORED);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStore.setItem(STORED, theme);
  document.documentElement.dataset.theme = theme;
}
