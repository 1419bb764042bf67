// Tests how the body of a create request becomes a session request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CreateSession } from '../../../contract/sessions.ts';
import { type Fault, isFault } from '../../kit/fault.ts';
import { normalizeCreate, type PlacementChoices } from './normalize-create.ts';

const NATIVE_CHOICES: PlacementChoices = { mount: 'native', regions: ['local', 'cellar'], engines: ['chromium'] };
const COMPAT_CHOICES: PlacementChoices = { ...NATIVE_CHOICES, mount: 'compat' };
const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const OTHER_ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';

const DEFAULT_REQUEST = {
  keepAlive: false,
  userMetadata: {},
  settings: { engine: 'chromium' },
  watcherSettings: {},
  warnings: [],
};

test('returns the defaults for an empty body', () =>
  assert.deepEqual(normalizeCreate({}, NATIVE_CHOICES), DEFAULT_REQUEST));

test('keeps the fields that the caller specified', () =>
  assert.deepEqual(
    normalizeCreate(
      { projectId: ID, timeout: 900, keepAlive: true, region: 'cellar', userMetadata: { a: { b: 1 } } },
      NATIVE_CHOICES,
    ),
    {
      ...DEFAULT_REQUEST,
      projectId: ID,
      timeout: 900,
      keepAlive: true,
      region: 'cellar',
      userMetadata: { a: { b: 1 } },
    },
  ));

const FINE: ReadonlyArray<readonly [string, CreateSession]> = [
  ['empty lists', { proxies: [], extensionIds: [], allowedDomains: [], proxySettings: { caCertificates: [] } }],
  ['false', { proxies: false, recordSession: false, browserSettings: { verified: false, blockAds: false } }],
  ['an open network policy', { browserSettings: { networkPolicy: { allow: [], deny: [], default: 'allow' } } }],
  [
    'defaults stated explicitly',
    { browserSettings: { viewport: { width: 1280 }, maskInputs: 'password', takeover: 'queue' } },
  ],
  ['equal values in both places', { logSession: false, browserSettings: { logSession: false } }],
  ['equal values after defaults', { viewport: { width: 1280 }, browserSettings: { viewport: { height: 720 } } }],
];
for (const [name, body] of FINE)
  test(`accepts ${name} without a warning`, () => assert.deepEqual(normalizeCreate(body, NATIVE_CHOICES).warnings, []));

const UNAVAILABLE_FIELDS: ReadonlyArray<readonly [string, CreateSession]> = [
  ['browserSettings.verified', { browserSettings: { verified: true, os: 'mac' } }],
  ['browserSettings.advancedStealth', { browserSettings: { advancedStealth: true } }],
];
for (const [field, body] of UNAVAILABLE_FIELDS)
  test(`refuses ${JSON.stringify(body)} as unavailable`, () =>
    assert.equal(refusalOf(body, NATIVE_CHOICES, 'feature_unavailable').details?.field, field));

test('ignores unavailable settings with a warning on the compatibility mount', () => {
  const request = normalizeCreate({ browserSettings: { verified: true, os: 'mac' } }, COMPAT_CHOICES);
  assert.deepEqual(
    request.warnings.map(({ code, path }) => [code, path]),
    [
      ['ignored', 'browserSettings.verified'],
      ['ignored', 'browserSettings.os'],
    ],
  );
});

const CONFLICTS: ReadonlyArray<readonly [readonly string[], CreateSession]> = [
  [
    ['recordSession', 'browserSettings.recordSession'],
    { recordSession: true, browserSettings: { recordSession: false } },
  ],
  [['logSession', 'browserSettings.logSession'], { logSession: true, browserSettings: { logSession: false } }],
  [
    ['viewport', 'browserSettings.viewport'],
    { viewport: { width: 800 }, browserSettings: { viewport: { width: 900 } } },
  ],
  [
    ['allowedDomains', 'browserSettings.allowedDomains'],
    { allowedDomains: ['a.test'], browserSettings: { allowedDomains: [] } },
  ],
  [['context', 'browserSettings.context'], { context: { id: ID }, browserSettings: { context: { id: OTHER_ID } } }],
  [['contextId', 'context'], { contextId: ID, context: { id: ID, persist: true } }],
  [['contextId', 'browserSettings.context'], { contextId: ID, browserSettings: { context: { id: OTHER_ID } } }],
];
for (const [paths, body] of CONFLICTS)
  test(`refuses different values of ${paths.join(' and ')}`, () =>
    assert.deepEqual(refusalOf(body, NATIVE_CHOICES, 'conflicting_fields').details?.paths, paths));

const WARNED_SETTINGS: ReadonlyArray<readonly [string, string, NonNullable<CreateSession['browserSettings']>]> = [
  ['captcha_not_supported', 'solveCaptchas', { solveCaptchas: true }],
  ['ignored', 'fingerprint', { fingerprint: { a: 1 } }],
];
for (const [code, name, browserSettings] of WARNED_SETTINGS)
  test(`returns the warning ${code} for ${name}`, () => {
    const [warning, ...more] = normalizeCreate({ browserSettings }, NATIVE_CHOICES).warnings;
    assert.deepEqual([warning?.code, warning?.path, more.length], [code, `browserSettings.${name}`, 0]);
  });

test('returns the settings for watchers separately from the other settings, and removes empty lists and duplicates', () => {
  const networkPolicy = { deny: ['a.test'] };
  const { settings, watcherSettings } = normalizeCreate(
    {
      extensionId: ID,
      proxySettings: { caCertificates: [OTHER_ID, OTHER_ID] },
      browserSettings: { extensionIds: [ID, OTHER_ID], allowedDomains: [], networkPolicy, context: { id: ID } },
    },
    NATIVE_CHOICES,
  );
  assert.deepEqual(settings, { engine: 'chromium' });
  assert.deepEqual(watcherSettings, {
    extensionIds: [ID, OTHER_ID],
    caCertificates: [OTHER_ID],
    networkPolicy,
    context: { id: ID },
  });
});

for (const [networkPolicy, count] of [
  [{ allow: ['a.test'] }, 1],
  [{ allow: ['a.test'], default: 'allow' }, 1],
  [{ allow: ['a.test'], default: 'deny' }, 0],
  [{ allow: ['b.a.test'], deny: ['a.test'] }, 0],
  [{ allow: [] }, 0],
] as const)
  test(`returns ${count === 0 ? 'no warning' : 'one warning'} for the network policy ${JSON.stringify(networkPolicy)}`, () => {
    const { allow, ...rest } = networkPolicy;
    const browserSettings = { networkPolicy: { ...rest, allow: [...allow] } } as NonNullable<
      CreateSession['browserSettings']
    >;
    const { warnings } = normalizeCreate({ browserSettings }, NATIVE_CHOICES);
    assert.equal(warnings.length, count);
    if (count > 0) assert.match(warnings[0]?.message ?? '', /allow has no effect.*default to "deny"/);
  });

test('returns no warning for settings that take effect', () => {
  const browserSettings = {
    viewport: { width: 1288, height: 711 },
    locale: 'de-DE',
    timezoneId: 'Asia/Tokyo',
    userAgent: 'Agent/1.0',
    geolocation: { latitude: 1, longitude: 2 },
    takeover: 'refuse' as const,
    ignoreCertificateErrors: true,
    enablePdfViewer: true,
  };
  assert.deepEqual(normalizeCreate({ browserSettings }, NATIVE_CHOICES).warnings, []);
});

for (const [name, browserSettings] of [
  ['timezoneId', { timezoneId: 'Mars/Olympus' }],
  ['locale', { locale: 'x' }],
] as const)
  test(`refuses an unknown ${name}, and reports the field`, () => {
    const { details } = refusalOf({ browserSettings }, NATIVE_CHOICES, 'invalid_request');
    assert.match(JSON.stringify(details), new RegExp(`browserSettings.${name}`));
  });

test('merges a top-level alias into browserSettings', () =>
  assert.deepEqual(normalizeCreate({ viewport: { width: 360, height: 800 } }, NATIVE_CHOICES).settings, {
    engine: 'chromium',
    viewport: { width: 360, height: 800 },
  }));

test('accepts a region name that only official clients use, and returns a warning', () => {
  const { region, regionAsked, warnings } = normalizeCreate({ region: 'eu-central-1' }, NATIVE_CHOICES);
  assert.deepEqual([region, regionAsked, warnings[0]?.code], [undefined, 'eu-central-1', 'region_not_local']);
});

test('returns no warning for a configured region with the same name as an official region', () => {
  const request = normalizeCreate(
    { region: 'us-east-1' },
    { mount: 'native', regions: ['us-east-1'], engines: ['chromium'] },
  );
  assert.deepEqual([request.region, request.regionAsked, request.warnings], ['us-east-1', undefined, []]);
});

const BAD: ReadonlyArray<readonly [string, CreateSession]> = [
  ['region', { region: 'moon' }],
  ['browserSettings.os', { browserSettings: { os: 'mac' } }],
  ['userMetadata.a', { userMetadata: { a: [] } }],
  ['userMetadata.a.b', { userMetadata: { a: { b: ['x'] } } }],
  ['userMetadata', { userMetadata: { a: 'x'.repeat(505) } }],
];
for (const [path, body] of BAD)
  test(`refuses ${JSON.stringify(body).slice(0, 60)}, and reports ${path}`, () => {
    const { details } = refusalOf(body, NATIVE_CHOICES, 'invalid_request');
    assert.deepEqual(
      Object(details).issues.map((issue: { path: string }) => issue.path),
      [path],
    );
  });

test('accepts 512 characters of metadata', () =>
  assert.doesNotThrow(() => normalizeCreate({ userMetadata: { a: 'x'.repeat(504) } }, NATIVE_CHOICES)));

function refusalOf(body: CreateSession, where: PlacementChoices, code: string): Fault {
  try {
    normalizeCreate(body, where);
  } catch (error) {
    if (isFault(error, code)) return error;
    throw error;
  }
  return assert.fail(`expected ${code}`);
}
