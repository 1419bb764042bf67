// The command line of every Chromium that we start, with the reason for each switch. SystemInfo shows the command line
// to clients, so it must not contain secrets.

export interface SwitchOptions {
  readonly engine?: 'chromium' | 'headless-shell';
  /** The path of the session folder inside the box. */
  readonly folder: string;
  readonly egressPort: number;
  /**
   * The locale for Accept-Language and navigator.languages. The locale of the browser itself is set in the environment.
   * In headless shell, shared workers and service workers do not get the languages.
   */
  readonly locale?: string;
  /** Whether Chromium's own sandbox is on. Chromium does not start as root with its sandbox on. */
  readonly hasSandbox: boolean;
}

/** The name of the feature with which Chromium starts a renderer in advance for the next page. */
export const SPARE_RENDERER_FEATURE = 'SpareRendererForSitePerProcess';

const DISABLED_FEATURES = [
  // these features start two hidden chrome:// renderers, which take 52 MB and make the first page 3.4 times slower
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'NetworkTimeServiceQuerying', // contacts the vendor's time server at every start
  SPARE_RENDERER_FEATURE, // costs a twelfth of the processor time of a start; pages open equally fast without it
];

const COMMON_SWITCHES = [
  '--headless=new',
  '--remote-debugging-pipe', // not a debugging port, which pages in the box could reach
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-default-apps',
  '--disable-background-networking', // background requests go to the vendor
  '--disable-component-update', // updates contact the vendor, and the root is read-only
  // without this switch, Chromium still checks for updates once a minute (measured)
  '--component-updater=url-source=http://127.0.0.1:1/',
  '--disable-sync',
  '--disable-domain-reliability', // it sends reports to the vendor
  '--disable-client-side-phishing-detection', // it downloads a model
  '--no-pings', // <a ping> would report clicks to a third party
  '--metrics-recording-only', // prevents sending of metrics
  '--disable-breakpad', // no crash uploads
  '--disable-crash-reporter',
  // no request to the account service at start; pages can still load accounts.google.com
  '--gaia-url=http://127.0.0.1:1',
  '--password-store=basic', // there is no key ring in the box
  '--use-mock-keychain',
  '--mute-audio',
  '--disable-gpu', // the box has no GPU; software rendering starts faster if no GPU is tried first
  '--disable-quic', // UDP cannot leave the box
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp', // no local addresses in ICE candidates
  '--silent-debugger-extension-api', // otherwise the bar of a debugging extension resizes every page
  // the client handles a busy page; nobody sees the dialog that reports the page as unresponsive
  '--disable-hang-monitor',
  '--disable-back-forward-cache', // Playwright's `page.goBack()` waits for a load event, which a cached page never fires
  '--disable-prompt-on-repost', // nobody sees the dialog
  // nobody sees the animations of the window, which take a quarter of the CPU time of a tab
  '--animation-duration-scale=0',
  '--lang=en-US',
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
];

/**
 * Returns the switch that makes headless shell report the same user agent as `chromium`. `version` has the form
 * `Chromium 156.0.8078.79`.
 */
export function shellIdentitySwitches(version: string): readonly string[] {
  const major = /(\d+)\./.exec(version)?.[1];
  if (major === undefined) return [];
  const userAgentPrefix = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)';
  return [`--user-agent=${userAgentPrefix} HeadlessChrome/${major}.0.0.0 Safari/537.36`];
}

const DEFAULT_LOCALE = 'en-US';

/** Switches for behavior that `chromium` has by default and headless shell does not. */
const SHELL_ONLY_SWITCHES = [
  '--site-per-process', // otherwise frames of other sites share the process of their page
  '--font-render-hinting=medium', // otherwise text has a different width than in `chromium`
];

export function switches(options: SwitchOptions): readonly string[] {
  // Without a locale, headless shell would send no Accept-Language header.
  const isShell = options.engine === 'headless-shell';
  const locale = options.locale ?? (isShell ? DEFAULT_LOCALE : undefined);
  return [
    ...COMMON_SWITCHES,
    ...(isShell ? SHELL_ONLY_SWITCHES : []),
    ...(options.hasSandbox ? [] : ['--no-sandbox']),
    ...(locale === undefined ? [] : [`--accept-lang=${acceptedLanguages(locale)}`]),
    `--user-data-dir=${options.folder}/profile`,
    `--proxy-server=http://127.0.0.1:${options.egressPort}`,
    '--proxy-bypass-list=<-loopback>', // requests to loopback also go through the proxy, so that its rules apply
    'about:blank', // any other start page makes requests
  ];
}

/** `de-DE` becomes `de-DE,de`. */
const acceptedLanguages = (locale: string): string => [...new Set([locale, locale.split('-')[0] ?? locale])].join(',');
