// The table of browser settings: where each field of `browserSettings` takes effect. The settings that a row stores,
// the settings with which a browser is started, and the settings that a create warns about or refuses are all derived
// from this table. If a setting is missing from the table, the code does not compile.

import { type BrowserSettings, type Engine, VIEWPORT_DEFAULT } from '../../../contract/sessions.ts';
import type { Browser } from '../../engines/browser/browser.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';

/** The settings with which Chromium is started. Sessions with equal launch settings can use the same warm browser. */
export interface LaunchSettings {
  /** If absent, `chromium`. */
  readonly engine?: Engine;
  /**
   * The locale is more than a command-line switch: Chromium also needs an environment variable and a file of UI texts,
   * which is created for the locale.
   */
  readonly locale?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly switches?: readonly string[];
  /** Managed policies in addition to those that every browser has. */
  readonly policies?: JsonObject;
}

type ClaimSettings = Parameters<Browser['applySettings']>[0];
type WarningCode = 'captcha_not_supported' | 'ignored';

/** Where a setting takes effect, and which engines do not support it, each with the reason. */
type Setting<Value> = Effect<Value> & { readonly unsupportedBy?: UnsupportedEngines };
export type UnsupportedEngines = Readonly<Partial<Record<Engine, string>>>;

type Effect<Value> =
  /** Passed to Chromium when it starts, so that the setting applies to every page and worker. */
  | (Stored<Value> & { readonly at: 'launch'; readonly launch: (value: Value) => LaunchSettings })
  /** Applied to the running browser when a session claims it, before the first client message. */
  | (Stored<Value> & { readonly at: 'claim'; readonly claim: (value: Value) => Partial<ClaimSettings> })
  /** Read from the session's row by a watcher. */
  | (Stored<Value> & { readonly at: 'watcher' })
  /**
   * Checked by a watcher before the session exists. The row stores the setting in the form that the watcher returns.
   */
  | { readonly at: 'check' }
  /** Merged into another setting while the request is read. */
  | { readonly at: 'alias' }
  /** Has no effect: the caller is warned. */
  | { readonly at: 'nowhere'; readonly warning: WarningCode }
  /** Refused on the native mount. On the compatibility mount the setting has no effect, and the caller is warned. */
  | { readonly at: 'refused'; readonly warning: WarningCode };

/** A setting that the row of a session stores unchanged. */
interface Stored<Value> {
  /** The value that takes effect if none is stored. Undefined if the browser decides. */
  readonly byDefault: Value | undefined;
}

type SettingValues = Required<BrowserSettings>;
type SettingName = keyof SettingValues;

const SETTINGS = {
  // The rows of older sessions contain no engine.
  engine: { at: 'launch', byDefault: 'chromium', launch: engine => ({ engine }) },
  userAgent: { at: 'launch', byDefault: undefined, launch: userAgent => ({ switches: [`--user-agent=${userAgent}`] }) },
  locale: { at: 'launch', byDefault: undefined, launch: locale => ({ locale: locale.replaceAll('_', '-') }) },
  timezoneId: { at: 'launch', byDefault: undefined, launch: timezoneId => ({ env: { TZ: timezoneId } }) },
  ignoreCertificateErrors: {
    at: 'launch',
    byDefault: false,
    launch: ignore => (ignore ? { switches: ['--ignore-certificate-errors'] } : {}),
  },
  enablePdfViewer: {
    at: 'launch',
    byDefault: false,
    launch: enable => (enable ? { policies: { AlwaysOpenPdfExternally: false } } : {}),
    unsupportedBy: { 'headless-shell': 'cannot show PDF files' },
  },

  viewport: {
    at: 'claim',
    byDefault: VIEWPORT_DEFAULT,
    claim: viewport => ({ viewport: { ...VIEWPORT_DEFAULT, ...viewport } }),
  },
  geolocation: { at: 'claim', byDefault: undefined, claim: geolocation => ({ geolocation }) },

  recordSession: { at: 'watcher', byDefault: true },
  maskInputs: { at: 'watcher', byDefault: 'password' },
  logSession: { at: 'watcher', byDefault: true },
  takeover: { at: 'watcher', byDefault: 'queue' },
  blockAds: { at: 'watcher', byDefault: false },
  egressBytes: { at: 'watcher', byDefault: undefined },

  networkPolicy: { at: 'check' },
  allowedDomains: { at: 'check' },
  context: { at: 'check' },
  extensionIds: { at: 'check', unsupportedBy: { 'headless-shell': 'cannot load extensions' } },
  extensionId: { at: 'alias' },

  solveCaptchas: { at: 'nowhere', warning: 'captcha_not_supported' },
  captchaImageSelector: { at: 'nowhere', warning: 'captcha_not_supported' },
  captchaInputSelector: { at: 'nowhere', warning: 'captcha_not_supported' },
  verified: { at: 'refused', warning: 'ignored' },
  advancedStealth: { at: 'refused', warning: 'ignored' },
  os: { at: 'nowhere', warning: 'ignored' },
  fingerprint: { at: 'nowhere', warning: 'ignored' },
} satisfies { readonly [N in SettingName]: Setting<SettingValues[N]> };

type EffectPlace = (typeof SETTINGS)[SettingName]['at'];
type NameAt<P extends EffectPlace> = {
  [N in SettingName]: (typeof SETTINGS)[N]['at'] extends P ? N : never;
}[SettingName];
export type SettingsAt<P extends EffectPlace> = Readonly<Pick<BrowserSettings, NameAt<P>>>;

const STORED_PLACES: ReadonlySet<EffectPlace> = new Set(['launch', 'claim', 'watcher']);

/** The settings that the row of a session stores unchanged. */
export type KeptSettings = SettingsAt<'launch' | 'claim' | 'watcher'>;

/** The same table, typed for use in loops: the entry for any name accepts the value for that name. */
const SETTINGS_BY_NAME: { readonly [N in SettingName]: AnySetting<SettingValues[N]> } = SETTINGS;
const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[]; // `Object.keys` returns `string[]`.

interface AnySetting<Value> {
  readonly at: EffectPlace;
  readonly byDefault?: Value | undefined;
  readonly launch?: (value: Value) => LaunchSettings;
  readonly claim?: (value: Value) => Partial<ClaimSettings>;
  readonly warning?: WarningCode;
  readonly unsupportedBy?: UnsupportedEngines;
}

/** Returns the given settings that take effect in one of these places. */
export function settingsAt<P extends EffectPlace>(settings: BrowserSettings, ...places: readonly P[]): SettingsAt<P> {
  const names = SETTING_NAMES.filter(
    name => settings[name] !== undefined && places.some(place => place === SETTINGS_BY_NAME[name].at),
  );
  // The type of `Object.fromEntries` does not contain the names.
  return Object.fromEntries(names.map(name => [name, settings[name]])) as SettingsAt<P>;
}

const SETTING_DEFAULTS: JsonObject = Object.fromEntries(
  SETTING_NAMES.flatMap(name => {
    const { byDefault } = SETTINGS_BY_NAME[name];
    return byDefault === undefined ? [] : [[name, byDefault]];
  }),
);

/** Returns the stored settings that take effect, with the defaults of settings that are not stored. */
export function effectiveSettings(stored: JsonObject): JsonObject {
  const names = SETTING_NAMES.filter(
    name => STORED_PLACES.has(SETTINGS_BY_NAME[name].at) && stored[name] !== undefined,
  );
  const viewport = { ...VIEWPORT_DEFAULT, ...(isObject(stored.viewport) ? stored.viewport : {}) };
  return { ...SETTING_DEFAULTS, ...Object.fromEntries(names.map(name => [name, stored[name]])), viewport };
}

/**
 * Returns the given settings that have no effect or are refused, in the order of the table. `false` counts as not
 * given.
 */
export const settingsWithoutEffect = (settings: BrowserSettings) =>
  SETTING_NAMES.flatMap(name => {
    const { at, warning } = SETTINGS_BY_NAME[name];
    const isGiven = settings[name] !== undefined && settings[name] !== false;
    return warning && isGiven ? [{ name, code: warning, isRefused: at === 'refused' }] : [];
  });

/** Returns the given settings that this engine does not support. `false` and an empty list count as not given. */
export const unsupportedSettings = (settings: BrowserSettings, engine: Engine) =>
  SETTING_NAMES.flatMap(name => {
    const [value, why] = [settings[name], SETTINGS_BY_NAME[name].unsupportedBy?.[engine]];
    const isGiven = value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
    return why !== undefined && isGiven ? [{ name, why }] : [];
  });

export const launchSettings = (stored: KeptSettings, preparedSettings: LaunchSettings = {}): LaunchSettings =>
  joinLaunchSettings([
    ...SETTING_NAMES.map(name => launchSettingsOf(name, stored)),
    windowSettingsOf(stored),
    preparedSettings,
  ]);

/**
 * Headless shell opens new pages with the window size that it was started with, not with the size of the first page.
 */
function windowSettingsOf({ engine, viewport }: KeptSettings): LaunchSettings {
  if (engine !== 'headless-shell') return {};
  const { width, height } = { ...VIEWPORT_DEFAULT, ...viewport };
  return { switches: [`--window-size=${width},${height}`] };
}

function launchSettingsOf<N extends SettingName>(name: N, stored: Partial<SettingValues>): LaunchSettings {
  const value = stored[name];
  return (value !== undefined && SETTINGS_BY_NAME[name].launch?.(value)) || {};
}

export const claimSettings = (stored: KeptSettings): ClaimSettings =>
  Object.assign({ viewport: VIEWPORT_DEFAULT }, ...SETTING_NAMES.map(name => claimSettingsOf(name, stored)));

function claimSettingsOf<N extends SettingName>(name: N, stored: Partial<SettingValues>): Partial<ClaimSettings> {
  const value = stored[name];
  return (value !== undefined && SETTINGS_BY_NAME[name].claim?.(value)) || {};
}

/**
 * Merges launch settings. If a variable or policy has several values, the last one is used; of several engines or
 * locales, the first one. Unset settings are omitted.
 */
export function joinLaunchSettings(parts: readonly LaunchSettings[]): LaunchSettings {
  const engine = parts.find(part => part.engine !== undefined)?.engine;
  const locale = parts.find(part => part.locale !== undefined)?.locale;
  const env: Record<string, string> = Object.assign({}, ...parts.map(part => part.env));
  const switches = parts.flatMap(part => part.switches ?? []);
  const policies: JsonObject = Object.assign({}, ...parts.map(part => part.policies));
  return {
    ...(engine === undefined ? {} : { engine }),
    ...(locale === undefined ? {} : { locale }),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(switches.length > 0 ? { switches } : {}),
    ...(Object.keys(policies).length > 0 ? { policies } : {}),
  };
}

/** The launch settings of an empty create on an installation with this engine. */
export const defaultLaunch = (engine: Engine): LaunchSettings => launchSettings({ engine });

/**
 * Returns a string that is the same for equal settings. This works because `joinLaunchSettings` always adds the members
 * in the same order.
 */
export const fingerprint = (launch: LaunchSettings): string => JSON.stringify(launch);
