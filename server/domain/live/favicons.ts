// Favicons of tabs in the live view. The session's own browser loads them, under its network rules, because a viewer's
// browser may connect only to this service. Each icon is loaded once for all viewers of the session.

import type { ObservedTarget } from '../../engines/browser/observation.ts';
import type { JsonObject } from '../../kit/json.ts';

const LOAD_TIMEOUT_MS = 5_000;
const ICON_BYTES_MAX = 32 * 1024;
const ICONS_MAX = 200;

export class Favicons {
  readonly #iconsByUrl = new Map<string, string>();
  readonly #onChanged: () => void;

  /** `onChanged` is called whenever an icon has been loaded. */
  constructor(onChanged: () => void) {
    this.#onChanged = onChanged;
  }

  /** The icon as a data URL, or undefined if it has not been loaded. The first call for an icon starts loading it. */
  of(target: ObservedTarget, url: string): string | undefined {
    if (url === '') return undefined;
    const knownIcon = this.#iconsByUrl.get(url);
    if (knownIcon !== undefined || this.#iconsByUrl.size >= ICONS_MAX) return knownIcon || undefined;
    this.#iconsByUrl.set(url, '');
    void this.#load(target, url).catch(() => {}); // The tab is shown without an icon.
    return undefined;
  }

  async #load(target: ObservedTarget, url: string): Promise<void> {
    const options = { disableCache: false, includeCredentials: false };
    const params = { frameId: target.id, url, options };
    const { resource } = await target.send('Network.loadNetworkResource', params, LOAD_TIMEOUT_MS);
    const { success, stream } = Object(resource);
    if (success !== true || typeof stream !== 'string') return;
    const bytes = await readAll(target, stream).finally(() => target.post('IO.close', { handle: stream }));
    if (!bytes || bytes.length === 0) return;
    // Browsers detect bitmap formats by themselves. Only SVG must be declared.
    const type = bytes[0] === LESS_THAN_CODE ? 'image/svg+xml' : 'image/png';
    this.#iconsByUrl.set(url, `data:${type};base64,${bytes.toString('base64')}`);
    this.#onChanged();
  }
}

const LESS_THAN_CODE = 0x3c;

/** Reads the whole icon. Undefined if it is larger than ICON_BYTES_MAX. */
async function readAll(target: ObservedTarget, handle: string): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  for (let size = 0; size <= ICON_BYTES_MAX; ) {
    const params: JsonObject = { handle, size: ICON_BYTES_MAX + 1 };
    const { data, base64Encoded, eof } = await target.send('IO.read', params, LOAD_TIMEOUT_MS);
    const chunk = Buffer.from(typeof data === 'string' ? data : '', base64Encoded === true ? 'base64' : 'utf8');
    chunks.push(chunk);
    size += chunk.length;
    if (eof === true) return size <= ICON_BYTES_MAX ? Buffer.concat(chunks) : undefined;
    if (chunk.length === 0) return undefined;
  }
  return undefined;
}
