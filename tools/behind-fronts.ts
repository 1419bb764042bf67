// The suites that `npm run test:slow` runs once more with their server behind the fronts of a fleet: what a session is and can do, without
// moving the clock. A part of the path of each.
export const BEHIND_FRONTS = [
  ...['sessions.test', 'contexts.test', 'downloads', 'uploads', 'recordings.test', 'limits.test', 'viewers', 'gateway'],
].map(name => `tests/acceptance/${name}`);
