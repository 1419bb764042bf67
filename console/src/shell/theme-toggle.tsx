// A button that changes the color theme: system, light or dark.
import { useState } from 'react';
import { IconButton } from '../ui/button.tsx';
import type { IconName } from '../ui/icon.tsx';
import { applyTheme, readStoredTheme, type Theme } from './theme.ts';

const NEXT_THEME: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };
const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' };
const THEME_NAMES: Readonly<Record<Theme, string>> = { system: 'system', light: 'light', dark: 'dark' };

export function ThemeToggle() {
  const [theme, setTheme] = useState(readStoredTheme);
  const nextTheme = NEXT_THEME[theme];
  const change = (): void => {
    applyTheme(nextTheme);
    setTheme(nextTheme);
  };
  return (
    <IconButton
      label={`Colours: ${THEME_NAMES[theme]}. Change to ${THEME_NAMES[nextTheme]}`}
      icon={ICONS[theme]}
      onClick={change}
    />
  );
}
