// The colour theme: light, dark or system. Only an explicit choice is stored.
export type Theme = 'system' | 'light' | 'dark';

const STORED = 'berth.theme';

export function storedTheme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(STORED);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStorage.setItem(STORED, theme);
  document.documentElement.dataset.theme = theme;
}
