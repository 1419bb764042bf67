// Ids of extensions that were uploaded or looked up in this browser, by application.
const KEPT_MAX = 50;

const place = (app: string): string => `berth.extensions.${app}`;

export function knownExtensions(app: string): readonly string[] {
  const stored = localStorage.getItem(place(app));
  return stored ? stored.split(' ').filter(Boolean) : [];
}

export const rememberExtensions = (app: string, ids: readonly string[]): void =>
  localStorage.setItem(place(app), ids.slice(0, KEPT_MAX).join(' '));
