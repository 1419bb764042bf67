// Converts a create body into a SessionRequest: merges aliases, refuses settings that are not available, and warns
// about settings without effect.
import { isDeepStrictEqual } from 'node:util';
import type { Warning } from '../../../contract/common.ts';
import {
  type BrowserSettings,
  COMPAT_REGIONS,
  type CreateSession,
  ENGINES,
  type Engine,
  VIEWPORT_DEFAULT,
} from '../../../contract/sessions.ts';
import { fault, invalidRequest } from '../../domain/faults.ts';
import type { SessionRequest, WatcherSettings } from '../../domain/sessions/api.ts';
import { requireValidMetadata } from '../../domain/sessions/metadata.ts';
import { settingsAt, settingsWithoutEffect, unsupportedSettings } from '../../domain/sessions/settings.ts';

/** The regions and engines that this installation offers for new sessions. */
export interface OfferedChoices {
  /** The operator's regions; the first is the default. */
  readonly regions: readonly string[];
  /** The engines that can be used; the first is the default. */
  readonly engines: readonly [Engine, ...Engine[]];
}

export interface PlacementChoices extends OfferedChoices {
  readonly mount: 'native' | 'compat';
}

export function normalizeCreate(body: CreateSession, choices: PlacementChoices): SessionRequest {
  const mergedSettings = mergeAliases(body);
  const settings = { ...mergedSettings, engine: chooseEngine(mergedSettings.engine, choices.engines) };
  refuseOsWithoutVerified(settings);
  refuseUnknownLocale(settings);
  const region = chooseRegion(body.region, choices.regions);
  const userMetadata = requireValidMetadata(body.userMetadata ?? {});
  refuseUnavailable(settings, choices.mount);
  refuseUnsupportedByEngine(body, settings, settings.engine);
  return {
    ...(body.projectId === undefined ? {} : { projectId: body.projectId }),
    ...(body.timeout === undefined ? {} : { timeout: body.timeout }),
    keepAlive: body.keepAlive ?? false,
    ...region.chosen,
    userMetadata,
    settings: settingsAt(settings, 'launch', 'claim', 'watcher'),
    watcherSettings: watcherSettingsOf(body, settings),
    warnings: [...region.warnings, ...warningsFor(settings)],
  };
}

// ---- the same setting in two places --------------------------------------------------------------------------------

type Alias = Exclude<keyof CreateSession & keyof BrowserSettings, 'extensionId' | 'extensionIds'>;

const CONTEXT_DEFAULT = { persist: false, exclusive: false };
/** Settings that are also accepted at the top level of the body, with the defaults of their fields. */
const ALIASES: Readonly<Record<Alias, object | undefined>> = {
  recordSession: undefined,
  logSession: undefined,
  allowedDomains: undefined,
  viewport: VIEWPORT_DEFAULT,
  context: CONTEXT_DEFAULT,
};
const ALIAS_NAMES = Object.keys(ALIASES) as readonly Alias[]; // TypeScript widens the keys to `string`

function mergeAliases(body: CreateSession): BrowserSettings {
  const nestedSettings = body.browserSettings ?? {};
  for (const name of ALIAS_NAMES)
    assertEqual([name, body[name]], [`browserSettings.${name}`, nestedSettings[name]], ALIASES[name]);
  const context = body.context ?? nestedSettings.context;
  const contextFromId = body.contextId === undefined ? undefined : { id: body.contextId };
  assertEqual(
    ['contextId', contextFromId],
    [body.context ? 'context' : 'browserSettings.context', context],
    CONTEXT_DEFAULT,
  );
  const extensionIds = [body, nestedSettings].flatMap(({ extensionId, extensionIds = [] }) =>
    extensionId === undefined ? extensionIds : [extensionId, ...extensionIds],
  );
  const topLevelSettings = Object.fromEntries(
    ALIAS_NAMES.flatMap(name => (body[name] === undefined ? [] : [[name, body[name]]])),
  );
  return {
    ...nestedSettings,
    ...topLevelSettings,
    ...(context || !contextFromId ? {} : { context: contextFromId }),
    extensionIds: [...new Set(extensionIds)],
  };
}

type FieldValue = readonly [path: string, value: unknown];

function assertEqual(
  [path, value]: FieldValue,
  [otherPath, otherValue]: FieldValue,
  defaults: object | undefined,
): void {
  if (value === undefined || otherValue === undefined) return;
  const withDefaults = (one: unknown): unknown => (defaults ? { ...defaults, ...Object(one) } : one);
  if (isDeepStrictEqual(withDefaults(value), withDefaults(otherValue))) return;
  throw fault('conflicting_fields', `${path} and ${otherPath} are the same setting with different values.`, {
    advice: 'Set the value in only one of the two places.',
    details: { paths: [path, otherPath] },
  });
}

// ---- refusals ------------------------------------------------------------------------------------------------------

function refuseOsWithoutVerified({ os, verified, advancedStealth }: BrowserSettings): void {
  if (os !== undefined && !verified && !advancedStealth)
    throw invalidRequest([
      {
        path: 'browserSettings.os',
        message: 'is used only with browserSettings.verified, which is not supported; omit os',
      },
    ]);
}

/** Unknown values are refused, because Chromium would silently use its default instead. */
function refuseUnknownLocale({ timezoneId, locale }: BrowserSettings): void {
  if (timezoneId !== undefined && !isAccepted(() => new Intl.DateTimeFormat('en', { timeZone: timezoneId })))
    throw invalidRequest([
      {
        path: 'browserSettings.timezoneId',
        message: `is ${JSON.stringify(timezoneId)}; expected an IANA time zone such as Europe/Berlin`,
      },
    ]);
  if (locale !== undefined && !isAccepted(() => Intl.getCanonicalLocales(locale.replaceAll('_', '-'))))
    throw invalidRequest([
      { path: 'browserSettings.locale', message: `is ${JSON.stringify(locale)}; expected a BCP 47 tag such as de-DE` },
    ]);
}

function isAccepted(construct: () => unknown): boolean {
  try {
    construct();
    return true;
  } catch {
    return false;
  }
}

function chooseRegion(requested: string | undefined, regions: readonly string[]) {
  if (requested === undefined) return { chosen: {}, warnings: [] };
  if (regions.includes(requested)) return { chosen: { region: requested }, warnings: [] };
  if (COMPAT_REGIONS.some(region => region === requested))
    return { chosen: { regionAsked: requested }, warnings: [regionNotLocalWarning(requested, regions)] };
  throw invalidRequest([
    {
      path: 'region',
      message: `is ${JSON.stringify(requested)}; expected one of ${[...regions, ...COMPAT_REGIONS].join(', ')}`,
    },
  ]);
}

const regionNotLocalWarning = (requested: string, [local]: readonly string[]): Warning => ({
  code: 'region_not_local',
  path: 'region',
  message: `This installation has no region ${requested}; the session runs in ${local}.`,
});

/**
 * Refuses settings that protect the caller, because running without them would be unsafe. On the compatibility mount,
 * they only cause warnings.
 */
function refuseUnavailable(settings: BrowserSettings, mount: PlacementChoices['mount']): void {
  const refusedSetting = settingsWithoutEffect(settings).find(({ isRefused }) => isRefused);
  if (!refusedSetting || mount === 'compat') return;
  const field = `browserSettings.${refusedSetting.name}`;
  throw fault('feature_unavailable', `${field} is not available on this installation.`, {
    advice: 'Omit the setting. The session was not created.',
    details: { field },
  });
}

const PACKAGES: Readonly<Record<Engine, string>> = {
  chromium: 'chromium',
  'headless-shell': 'chromium-headless-shell',
};

function chooseEngine(requested: Engine | undefined, engines: PlacementChoices['engines']): Engine {
  const engine = requested ?? engines[0];
  if (engines.includes(engine)) return engine;
  throw fault('feature_unavailable', `The engine ${engine} cannot be used on this machine.`, {
    advice: `Use ${engines.join(' or ')}, or ask the operator to install the Debian package ${PACKAGES[engine]} and to restart Berth; \`berth doctor\` reports what is missing. The session was not created.`,
    details: { field: ENGINE_FIELD, setting: ENGINE_FIELD },
  });
}

const ENGINE_FIELD = 'browserSettings.engine';

const CERTIFICATES_FIELD = 'proxySettings.caCertificates';
/** Headless shell does not read the policy that makes a browser trust certificate authorities. */
const ENGINE_WITHOUT_CERTIFICATES: Engine = 'headless-shell';

function refuseUnsupportedByEngine(body: CreateSession, settings: BrowserSettings, engine: Engine): void {
  const hasCertificates = (body.proxySettings?.caCertificates?.length ?? 0) > 0;
  const unsupportedCertificates = {
    field: CERTIFICATES_FIELD,
    why: 'does not support additional certificate authorities',
  };
  const [unsupportedSetting] = [
    ...unsupportedSettings(settings, engine).map(({ name, why }) => ({ field: `browserSettings.${name}`, why })),
    ...(hasCertificates && engine === ENGINE_WITHOUT_CERTIFICATES ? [unsupportedCertificates] : []),
  ];
  if (!unsupportedSetting) return;
  const otherEngines = ENGINES.filter(other => other !== engine);
  throw fault('feature_unavailable', `The engine ${engine} ${unsupportedSetting.why} (${unsupportedSetting.field}).`, {
    advice: `Set ${ENGINE_FIELD} to ${otherEngines.join(' or ')}, or omit ${unsupportedSetting.field}. The session was not created.`,
    details: { field: unsupportedSetting.field, setting: unsupportedSetting.field },
  });
}

// ---- settings without effect ---------------------------------------------------------------------------------------

const WARNING_MESSAGES = {
  captcha_not_supported: 'has no effect: Berth has no CAPTCHA solver',
  ignored: 'is accepted for compatibility and has no effect',
};

const warningsFor = (settings: BrowserSettings): Warning[] => [
  ...settingsWithoutEffect(settings).map(({ name, code }) => ({
    code,
    path: `browserSettings.${name}`,
    message: `${name} ${WARNING_MESSAGES[code]}.`,
  })),
  ...(isUnrestrictive(settings.networkPolicy) ? [ALLOW_WITHOUT_EFFECT] : []),
];

const ALLOW_WITHOUT_EFFECT: Warning = {
  code: 'ignored',
  path: 'browserSettings.networkPolicy.allow',
  message:
    'allow has no effect, because every host is allowed by default. Set networkPolicy.default to "deny" to restrict the session to these hosts.',
};

const isUnrestrictive = ({
  allow = [],
  deny = [],
  ...policy
}: NonNullable<BrowserSettings['networkPolicy']> = {}): boolean =>
  allow.length > 0 && deny.length === 0 && policy.default !== 'deny';

// ---- settings for the watchers -------------------------------------------------------------------------------------

/** The settings that watchers check. An empty list is omitted, because it requests nothing. */
function watcherSettingsOf({ proxies, proxySettings }: CreateSession, settings: BrowserSettings): WatcherSettings {
  const caCertificates = [...new Set(proxySettings?.caCertificates)];
  const watcherSettings = { ...settingsAt(settings, 'check'), caCertificates, ...(proxies ? { proxies } : {}) };
  return Object.fromEntries(
    Object.entries(watcherSettings).filter(([, value]) => !Array.isArray(value) || value.length > 0),
  );
}
