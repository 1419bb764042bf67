// The suites that `npm run test:slow` runs a second time, on headless-shell. What they test depends on the engine, and
// needs nothing that headless-shell lacks. Each entry is a part of a path.
export const BOTH_ENGINES_SUITES = [
  ...['settings', 'puppeteer', 'playwright', 'downloads', 'takeover', 'popups', 'devtools', 'uploads', 'network.test'],
  ...['recordings.test', 'contexts.test', 'proxies', 'logs', 'viewers', 'gateway', 'channels', 'stuck'],
]
  .map(name => `tests/acceptance/${name}`)
  .concat(['attacks/hostile-pages', 'attacks/jail', 'faults/adoption'].map(name => `tests/${name}`));
