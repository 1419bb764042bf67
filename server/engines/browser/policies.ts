// The managed policies of every jailed Chromium. They turn off features that the service does not want, and block
// the URLs that pages, extensions and clients may not open. The gateway refuses commands that open these URLs with a
// clearer message. The policies also apply if something bypasses the gateway.

import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import type { JsonObject } from '../../kit/json.ts';
import { type SharedFolder, SharedFolders } from './shared-folders.ts';

/** The name of the downloads folder in the session folder. Its files may be opened with `file:` URLs. */
export const DOWNLOADS_FOLDER = 'downloads';
/** The absolute path of the uploads folder in the box. Its files may be opened with `file:` URLs. */
const UPLOADS_IN_BOX = '/tmp/.uploads';

const BLOCKED_SCHEMES = ['file', 'chrome', 'devtools', 'view-source', 'chrome-untrusted'] as const;

const POLICIES = {
  URLBlocklist: BLOCKED_SCHEMES.map(scheme => (scheme === 'view-source' ? 'view-source:*' : `${scheme}://*`)),
  URLAllowlist: [`file:///session/${DOWNLOADS_FOLDER}/*`, `file://${UPLOADS_IN_BOX}/*`],
  // the warning bar would reduce the height of the first tab by 56 pixels
  CommandLineFlagSecurityWarningsEnabled: false,
  DeveloperToolsAvailability: 1, // 1 keeps CDP enabled; 2 would disable CDP together with DevTools
  SafeBrowsingProtectionLevel: 0, // Safe Browsing would fetch its lists from the vendor
  BrowserSignin: 0,
  SyncDisabled: true,
  PasswordManagerEnabled: false, // the password manager would offer to save what agents type
  AutofillCreditCardEnabled: false,
  AutofillAddressEnabled: false,
  TranslateEnabled: false,
  SpellCheckServiceEnabled: false,
  SearchSuggestEnabled: false,
  NetworkPredictionOptions: 2, // no prefetching
  DnsOverHttpsMode: 'off', // only the egress proxy resolves names
  QuicAllowed: false,
  BackgroundModeEnabled: false,
  DefaultBrowserSettingEnabled: false,
  ComponentUpdatesEnabled: false,
  PromotionsEnabled: false,
  MetricsReportingEnabled: false,
  AlwaysOpenPdfExternally: true, // PDFs are downloaded, not shown in the tab
} as const;

/** Limits on the policy folders that no browser uses. Certificates make some of them large. */
const UNUSED_POLICIES_MAX = 16;
const UNUSED_POLICY_BYTES_MAX = 64 * 1024 ** 2;
const POLICY_FILE = join('policies', 'managed', 'berth.json');

/** Prepares one folder for each set of policies. The folder is mounted as `/etc/chromium` in a box. */
export class PolicyFolders {
  readonly #folders: SharedFolders;

  constructor(folder: string, lifetimeMs: number, clock: Clock) {
    this.#folders = new SharedFolders({
      parent: join(folder, 'policies'),
      unusedMax: UNUSED_POLICIES_MAX,
      unusedBytesMax: UNUSED_POLICY_BYTES_MAX,
      bytesOf: async path => (await stat(join(path, POLICY_FILE))).size,
      lifetimeMs,
      clock,
    });
  }

  /** Prepares a folder that contains the policies that all browsers share, together with `extraPolicies`. */
  prepare(extraPolicies: JsonObject = {}): Promise<SharedFolder> {
    const text = `${JSON.stringify({ ...POLICIES, ...extraPolicies }, undefined, 2)}\n`;
    const name = createHash('sha256').update(text).digest('hex').slice(0, 32);
    return this.#folders.use(name, folder => writeIfChanged(folder, text));
  }
}

/**
 * Writes the policy file. Chromium would ignore, without an error, a file that the box's user cannot read. The
 * permissions are therefore always set: the umask may have removed them, even from a file that an earlier server wrote.
 */
async function writeIfChanged(folder: string, text: string): Promise<void> {
  const file = join(folder, POLICY_FILE);
  const managedFolder = dirname(file);
  if ((await readFile(file, 'utf8').catch(() => undefined)) !== text) {
    await mkdir(managedFolder, { recursive: true });
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  }
  await chmod(file, 0o644);
  for (const path of [managedFolder, dirname(managedFolder)]) await chmod(path, 0o755);
}
