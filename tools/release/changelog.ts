// The changelog of a release: the text under "Unreleased" in the repository becomes the section of the version that is
// being made.

const UNRELEASED = '## Unreleased';

export function changelogFor(text: string, version: string, at: Date): string {
  const lines = text.split('\n');
  const heading = `## ${version}`;
  const hasSection = lines.some(line => line === heading || line.startsWith(`${heading} `));
  if (hasSection && !lines.includes(UNRELEASED)) return text;
  if (hasSection)
    throw new Error(
      `CHANGELOG.md has a section for ${version} and also an "Unreleased" section: raise the version in package.json, or merge the two sections.`,
    );
  if (!lines.includes(UNRELEASED))
    throw new Error(
      `CHANGELOG.md has neither "${UNRELEASED}" nor "${heading}": add a section that lists what is new in ${version}.`,
    );
  return text.replace(UNRELEASED, `${heading} (${at.toISOString().slice(0, 10)})`);
}
