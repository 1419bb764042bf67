import assert from 'node:assert/strict';
import { it } from 'node:test';
import { browserName } from './browser-name.ts';

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)';

it('browserName returns browser and system even if the user agent names other browsers, and a generic name for an unknown user agent', () => {
  const names = {
    [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/156.0.0.0 Safari/537.36`]: 'Chrome on Linux',
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0`]:
      'Edge on Windows',
    [`Mozilla/5.0 (Linux; Android 14) ${WEBKIT} Chrome/156.0.0.0 Mobile Safari/537.36 OPR/90.0`]: 'Opera on Android',
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/18.0 Safari/605.1.15`]: 'Safari on Mac OS',
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) ${WEBKIT} Version/18.0 Safari/604.1`]: 'Safari on iPhone',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0': 'Firefox on Linux',
    'curl/8.0': 'A browser',
  };
  for (const [userAgent, name] of Object.entries(names)) assert.equal(browserName(userAgent), name);
  assert.equal(browserName(undefined), 'A browser');
});
