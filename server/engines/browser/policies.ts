// The managed policies that every jailed Chromium reads: what pages, extensions and clients may not open whatever way
// they try. The gateway refuses the same with a clearer message; this is what holds when something steps around it.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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

export interface PolicyWish {
  /** Show PDFs in the tab instead of downloading them. */
  readonly pdfViewer: boolean;
}

/** Writes the policy folder (`/etc/chromium` of the box) and returns its path. */
export async function writePolicies(folder: string, { pdfViewer }: PolicyWish): Promise<string> {
  const managed = join(folder, 'policies', 'managed');
  await mkdir(managed, { recursive: true, mode: 0o755 });
  const file = join(managed, 'berth.json');
  await writeFile(
    `${file}.new`,
    `${JSON.stringify({ ...POLICIES, AlwaysOpenPdfExternally: !pdfViewer }, undefined, 2)}\n`,
    { mode: 0o644 },
  );
  await rename(`${file}.new`, file);
  return folder;
}
