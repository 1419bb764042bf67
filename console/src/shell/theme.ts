// The color theme: light, dark or system. Only an explicit choice is stored.
import { localStore } from '../api/storage.ts';

export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'berth.theme';

export function readStoredTheme(): Theme {
  const stored = localStore.getItem(STORAGE_KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    localStore.removeItem(STORAGE_KEY);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStore.setItem(STORAGE_KEY, theme);
  document.documentElement.dataset.theme = theme;
}
