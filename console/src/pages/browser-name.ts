// A name by which people can recognize their own browsers.

/**
 * More specific names come first. The user agents of Edge and Opera also contain `Chrome`, that of Chrome also contains
 * `Safari`, and that of Android also contains `Linux`.
 */
const BROWSERS = { Firefox: 'Firefox', Edg: 'Edge', OPR: 'Opera', Chrome: 'Chrome', Safari: 'Safari' };
const SYSTEMS = {
  Windows: 'Windows',
  Android: 'Android',
  iPhone: 'iPhone',
  iPad: 'iPad',
  'Mac OS': 'Mac OS',
  Linux: 'Linux',
};

/** Returns a name such as `Chrome on Linux`. */
export function browserName(userAgent = ''): string {
  const browser = firstNameIn(userAgent, BROWSERS) ?? 'A browser';
  const system = firstNameIn(userAgent, SYSTEMS);
  return system ? `${browser} on ${system}` : browser;
}

const firstNameIn = (userAgent: string, names: Readonly<Record<string, string>>): string | undefined =>
  Object.entries(names).find(([part]) => userAgent.includes(part))?.[1];
