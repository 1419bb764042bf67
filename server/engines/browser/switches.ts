// The command line of every Chromium we start. Each switch gives its reason; SystemInfo shows the line to clients, so
// nothing secret may ever stand here.

export interface SwitchWish {
  /** The session folder as Chromium sees it. */
  readonly folder: string;
  readonly egressPort: number;
  /** What pages are told of languages, by header and by navigator; the locale itself comes by the environment. */
  readonly locale?: string;
  /** Without a jail Chromium's own sandbox stays on, except for root, which it refuses. */
  readonly sandbox: boolean;
}

const DISABLED_FEATURES = [
  'WebUIOmniboxPopup', // two hidden chrome:// renderers: 52 MB and a first page 3.4 times slower
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'NetworkTimeServiceQuerying', // asks a time server of the vendor at every start
];

const ALWAYS = [
  '--headless=new',
  '--remote-debugging-pipe', // no debugging port at all: a page inside could reach one
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-default-apps',
  '--disable-background-networking', // calls home
  '--disable-component-update', // calls home, and the root is read-only
  '--component-updater=url-source=http://127.0.0.1:1/', // one check a minute is left without this (measured)
  '--disable-sync',
  '--disable-domain-reliability', // reports to the vendor
  '--disable-client-side-phishing-detection', // downloads a model
  '--no-pings', // <a ping> would tell a third party of clicks
  '--metrics-recording-only', // keeps metrics from being sent
  '--disable-breakpad', // no crash uploads
  '--disable-crash-reporter',
  '--gaia-url=http://127.0.0.1:1', // the account service is asked at start otherwise; pages still reach accounts.google.com
  '--password-store=basic', // there is no key ring in the box
  '--use-mock-keychain',
  '--mute-audio',
  '--disable-gpu', // none in the box; the software path starts faster without the attempt
  '--disable-quic', // UDP has no way out of the box
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp', // no local addresses in candidates
  '--silent-debugger-extension-api', // an extension that debugs would otherwise resize every page with its bar
  '--disable-hang-monitor', // a busy page is the client's business, not a dialog's
  '--disable-prompt-on-repost', // a dialog nobody could see
  '--lang=en-US',
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
];

export function switches(wish: SwitchWish): readonly string[] {
  return [
    ...ALWAYS,
    ...(wish.sandbox ? [] : ['--no-sandbox']),
    ...(wish.locale === undefined ? [] : [`--accept-lang=${acceptedLanguages(wish.locale)}`]),
    `--user-data-dir=${wish.folder}/profile`,
    `--proxy-server=http://127.0.0.1:${wish.egressPort}`,
    '--proxy-bypass-list=<-loopback>', // loopback through the proxy too: its rules decide, not Chromium
    'about:blank', // a page to attach to; any other start page makes requests
  ];
}

/** `de-DE` also reads `de`. */
const acceptedLanguages = (locale: string): string => [...new Set([locale, locale.split('-')[0] ?? locale])].join(',');
