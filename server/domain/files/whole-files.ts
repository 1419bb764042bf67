// Determines which files in the downloads folder of a browser are complete. Chromium writes to `guid.crdownload`. At
// the end it creates an empty file `guid` and renames `guid.crdownload` to `guid`, so for a moment both names exist.
const GUID_PATTERN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PARTIAL_SUFFIX = '.crdownload';

/** Returns the guids of downloads that have a file, complete or partial. May contain duplicates. */
export const downloadGuids = (names: readonly string[]): readonly string[] =>
  names
    .map(name => (name.endsWith(PARTIAL_SUFFIX) ? name.slice(0, -PARTIAL_SUFFIX.length) : name))
    .filter(name => GUID_PATTERN.test(name));

export function downloadState(names: readonly string[], guid: string): 'whole' | 'partial' | 'absent' {
  if (names.includes(guid + PARTIAL_SUFFIX)) return 'partial';
  return names.includes(guid) ? 'whole' : 'absent';
}

export function completeGuids(names: readonly string[]): readonly string[] {
  const allNames = new Set(names);
  return names.filter(name => GUID_PATTERN.test(name) && !allNames.has(name + PARTIAL_SUFFIX));
}
