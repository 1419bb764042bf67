// Which of the names in a browser's folder of downloads are files that are whole. Chromium writes to `guid.crdownload`. In
// the end it makes an empty file `guid`, and renames the other one over it: until then both names are there.
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PARTIAL = '.crdownload';

/** The guids of downloads that have a file, whole or not, some twice. */
export const guidsAmong = (names: readonly string[]): readonly string[] =>
  names.map(name => (name.endsWith(PARTIAL) ? name.slice(0, -PARTIAL.length) : name)).filter(name => GUID.test(name));

export function stateAmong(names: readonly string[], guid: string): 'whole' | 'partial' | 'absent' {
  if (names.includes(guid + PARTIAL)) return 'partial';
  return names.includes(guid) ? 'whole' : 'absent';
}

export function wholeAmong(names: readonly string[]): readonly string[] {
  const all = new Set(names);
  return names.filter(name => GUID.test(name) && !all.has(name + PARTIAL));
}
