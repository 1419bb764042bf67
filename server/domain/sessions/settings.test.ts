// Tests the functions that are derived from the table of browser settings.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowserSettings } from '../../../contract/sessions.ts';
import {
  claimSettings,
  defaultLaunch,
  fingerprint,
  launchSettings,
  settingsAt,
  unsupportedSettings,
} from './settings.ts';

test('merges launch settings with the settings that watchers prepared', () =>
  assert.deepEqual(
    launchSettings(
      {
        userAgent: 'Agent/1.0',
        locale: 'de_DE',
        timezoneId: 'Asia/Tokyo',
        ignoreCertificateErrors: true,
        enablePdfViewer: true,
        recordSession: false,
      },
      { env: { A: '1' }, policies: { CACertificates: ['x'] } },
    ),
    {
      locale: 'de-DE',
      env: { TZ: 'Asia/Tokyo', A: '1' },
      switches: ['--user-agent=Agent/1.0', '--ignore-certificate-errors'],
      policies: { AlwaysOpenPdfExternally: false, CACertificates: ['x'] },
    },
  ));

test('equal launch settings have the same fingerprint, regardless of the order of properties', () => {
  const kept = { enablePdfViewer: false, ignoreCertificateErrors: false, viewport: { width: 900 }, logSession: false };
  assert.equal(fingerprint(launchSettings(kept)), fingerprint({}));
  const one = launchSettings({ locale: 'de-DE', userAgent: 'Agent/1.0', ignoreCertificateErrors: true });
  const otherSettings = launchSettings({ ignoreCertificateErrors: true, userAgent: 'Agent/1.0', locale: 'de_DE' });
  assert.equal(fingerprint(one), fingerprint(otherSettings));
  assert.notEqual(fingerprint(one), fingerprint({}));
});

test('the launch settings of different engines have different fingerprints', () =>
  assert.notEqual(fingerprint(defaultLaunch('chromium')), fingerprint(launchSettings({ engine: 'headless-shell' }))));

test('passes the viewport size to headless shell as the window size', () => {
  const { switches } = launchSettings({ engine: 'headless-shell', viewport: { width: 800 } });
  assert.deepEqual(switches, ['--window-size=800,720']);
});

test('lists requested settings that an engine does not support', () => {
  const requestedSettings: BrowserSettings = { enablePdfViewer: true, extensionIds: ['x'], locale: 'de-DE' };
  assert.deepEqual(
    unsupportedSettings(requestedSettings, 'headless-shell').map(({ name }) => name),
    ['enablePdfViewer', 'extensionIds'],
  );
  assert.deepEqual(unsupportedSettings(requestedSettings, 'chromium'), []);
  assert.deepEqual(unsupportedSettings({ enablePdfViewer: false, extensionIds: [] }, 'headless-shell'), []);
});

test('uses the default for an omitted viewport dimension', () => {
  assert.deepEqual(claimSettings({}), { viewport: { width: 1280, height: 720 } });
  const geolocation = { latitude: 1, longitude: 2 };
  assert.deepEqual(claimSettings({ viewport: { width: 360 }, geolocation, locale: 'de-DE' }), {
    viewport: { width: 360, height: 720 },
    geolocation,
  });
});

test('settingsAt returns only the requested settings that take effect at the given stages', () => {
  const requestedSettings: BrowserSettings = {
    takeover: 'refuse',
    locale: 'de-DE',
    verified: true,
    extensionId: 'x',
    allowedDomains: [],
  };
  assert.deepEqual(settingsAt(requestedSettings, 'launch', 'claim', 'watcher'), {
    locale: 'de-DE',
    takeover: 'refuse',
  });
  assert.deepEqual(settingsAt(requestedSettings, 'check'), { allowedDomains: [] });
});
