// The managed policies that every jailed Chromium reads: what pages, extensions and clients may not open whatever way
// they try. The gateway refuses the same with a clearer message; this is what holds when something steps around it.
import { createHash } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SingleFlight } from '../../kit/single-flight.ts';
import type { JsonObject } from './json.ts';

/** Where a browser's downloads and uploads stand in its box; `file:` pages of these two may be opened. */
export const DOWNLOADS = 'downloads';
export const UPLOADS_IN_BOX = '/tmp/.uploads';

export const BLOCKED_SCHEMES = ['file', 'chrome', 'devtools', 'view-source', 'chrome-untrusted'] as const;

const POLICIES = {
  URLBlocklist: BLOCKED_SCHEMES.map(scheme => (scheme === 'view-source' ? 'view-source:*' : `${scheme}://*`)),
  URLAllowlist: [`file:///session/${DOWNLOADS}/*`, `file://${UPLOADS_IN_BOX}/*`],
  CommandLineFlagSecurityWarningsEnabled: false, // its bar takes 56 pixels from the first tab and from no other
  DeveloperToolsAvailability: 1, // CDP stays; the DevTools window of a page does not exist here
  SafeBrowsingProtectionLevel: 0, // its lists are fetched from the vendor
  BrowserSignin: 0,
  SyncDisabled: true,
  PasswordManagerEnabled: false, // would offer to keep what agents type
  AutofillCreditCardEnabled: false,
  AutofillAddressEnabled: false,
  TranslateEnabled: false,
  SpellCheckServiceEnabled: false,
  SearchSuggestEnabled: false,
  NetworkPredictionOptions: 2, // nothing is fetched before somebody asks
  DnsOverHttpsMode: 'off', // names are resolved by the egress proxy alone
  QuicAllowed: false,
  BackgroundModeEnabled: false,
  DefaultBrowserSettingEnabled: false,
  ComponentUpdatesEnabled: false,
  PromotionsEnabled: false,
  MetricsReportingEnabled: false,
} as const;

/** One folder (`/etc/chromium` of a box) for each set of policies that was asked for since this process started. */
export class PolicyFolders {
  readonly #parent: string;
  readonly #written = new SingleFlight<string, string>();
  readonly #folders = new Map<string, string>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** `pdfViewer`: show PDFs in the tab instead of downloading them. `more`: policies over those of every browser. */
  async of(pdfViewer: boolean, more: JsonObject = {}): Promise<string> {
    const text = `${JSON.stringify({ ...POLICIES, AlwaysOpenPdfExternally: !pdfViewer, ...more }, undefined, 2)}\n`;
    const name = createHash('sha256').update(text).digest('hex').slice(0, 32);
    return this.#folders.get(name) ?? this.#written.run(name, () => this.#write(name, text));
  }

  async #write(name: string, text: string): Promise<string> {
    const folder = join(this.#parent, name);
    const managed = join(folder, 'policies', 'managed');
    await mkdir(managed, { recursive: true, mode: 0o755 });
    const file = join(managed, 'berth.json');
    await writeFile(`${file}.new`, text, { mode: 0o644 });
    await rename(`${file}.new`, file);
    this.#folders.set(name, folder);
    return folder;
  }
}
