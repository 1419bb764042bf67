// Ids of extensions that were uploaded or looked up in this browser, by application.
const STORED_IDS_MAX = 50;

const storageKey = (app: string): string => `berth.extensions.${app}`;

export function knownExtensionIds(app: string): readonly string[] {
  const storedIds = localStorage.getItem(storageKey(app));
  return storedIds ? storedIds.split(' ').filter(Boolean) : [];
}

export const rememberExtensions = (app: string, ids: readonly string[]): void =>
  localStorage.setItem(storageKey(app), ids.slice(0, STORED_IDS_MAX).join(' '));
