// The suites that `npm run test:slow` runs once more with the server behind the fronts of a fleet: those that test the
// behavior of sessions, and do not advance the clock. Each is named by a part of its path.
export const FRONTS_SUITES = [
  ...['sessions.test', 'contexts.test', 'downloads', 'uploads', 'recordings.test', 'limits.test', 'viewers', 'gateway'],
].map(name => `tests/acceptance/${name}`);
