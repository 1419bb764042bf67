// Browser storage for the console and for the hand-off page. If a page is in a frame of another site, some browsers
// refuse to store anything. The values are then kept in memory until the page is closed.
type KeyValueStore = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export const localStore: KeyValueStore = storageOrMemory(() => localStorage);
export const tabStore: KeyValueStore = storageOrMemory(() => sessionStorage);

function storageOrMemory(getStorage: () => Storage): KeyValueStore {
  try {
    return getStorage();
  } catch {
    const items = new Map<string, string>();
    return {
      getItem: name => items.get(name) ?? null,
      setItem: (name, text) => void items.set(name, text),
      removeItem: name => void items.delete(name),
    };
  }
}
