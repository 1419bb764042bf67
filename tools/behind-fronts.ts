// The suites that `npm run test:slow` runs once more with their server behind the fronts of a fleet: those about what a
// session is and can do that do not move the clock. Each is named by a part of its path.
export const BEHIND_FRONTS = [
  ...['sessions.test', 'contexts.test', 'downloads', 'uploads', 'recordings.test', 'limits.test', 'viewers', 'gateway'],
].map(name => `tests/acceptance/${name}`);
