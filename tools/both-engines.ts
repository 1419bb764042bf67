// The suites that `npm run test:slow` runs a second time, on headless-shell: all that start sessions and need nothing
// that this engine lacks. Each is named by a part of its path.
export const BOTH_ENGINES_SUITES = [
  ...['settings', 'puppeteer', 'playwright', 'downloads', 'takeover', 'popups', 'devtools', 'uploads', 'network.test'],
  ...['recordings.test', 'contexts.test', 'proxies', 'logs', 'viewers', 'gateway', 'channels', 'stuck'],
]
  .map(name => `tests/acceptance/${name}`)
  .concat(['attacks/hostile-pages', 'attacks/jail', 'faults/adoption'].map(name => `tests/${name}`));
