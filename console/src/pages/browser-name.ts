// A name by which people can recognize their own browsers.

/** Specific names come first: Edge and Opera also name Chrome, Chrome also names Safari, and Android also names Linux. */
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
