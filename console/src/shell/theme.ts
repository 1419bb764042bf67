// The colour theme: light, dark or system. Only an explicit choice is stored.
import { localStored } from '../api/storage.ts';

export type Theme = 'system' | 'light' | 'dark';

const STORED = 'berth.theme';

export function storedTheme(): Theme {
  const stored = localStored.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    localStored.removeItem(STORED);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStored.setItem(STORED, theme);
  document.documentElement.dataset.theme = theme;
}
