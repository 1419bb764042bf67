// The documents on the site, their order and their headings. A document of docs/ that is not named here is listed under
// "Guides", so that a new one is never missing.
export interface Entry {
  /** Path on the site below /docs. Empty for the start page. */
  readonly path: string;
  /** Path below docs/. Absent if the service itself serves the page. */
  readonly file?: string;
  /** Replaces the document's own title. */
  readonly title?: string;
}

export interface Section {
  readonly name: string;
  readonly entries: readonly Entry[];
}

const doc = (name: string, title?: string): Entry => ({
  path: name,
  file: `${name}.md`,
  ...(title ? { title } : {}),
});

const SECTIONS: readonly Section[] = [
  {
    name: 'Start',
    entries: [
      { path: '', file: 'index.md', title: 'Quick start' },
      doc('guides/first-steps', 'First steps'),
      doc('concepts'),
    ],
  },
  {
    name: 'Clients',
    entries: [
      doc('guides/typescript', 'TypeScript'),
      doc('guides/command-line', 'Command line'),
      doc('guides/log-in-once', 'Log in once, reuse'),
      doc('guides/playwright', 'Playwright'),
      doc('guides/puppeteer', 'Puppeteer'),
      doc('guides/stagehand', 'Stagehand'),
      doc('guides/browser-use', 'browser-use'),
      doc('guides/mcp', 'MCP clients'),
      doc('operations', 'Operations'),
      doc('guides/operation-receipt', 'A call and its receipt'),
      doc('guides/approved-once', 'Approved by a customer'),
      doc('guides/handed-over', 'Handed over to a person'),
      doc('credentials', 'Credentials'),
      doc('connecting'),
      doc('not-offered', 'What is not offered'),
    ],
  },
  { name: 'Guides', entries: [] },
  {
    name: 'Running it',
    entries: [
      doc('operating'),
      doc('guides/install', 'Install a release'),
      doc('guides/systemd', 'As a service'),
      doc('guides/container', 'In a container'),
      doc('guides/kubernetes', 'On Kubernetes'),
      doc('guides/behind-tls', 'Behind TLS'),
      doc('guides/upgrade', 'Upgrade and roll back'),
      doc('security', 'Security model'),
      doc('audit', 'Audit log'),
      doc('limits'),
      doc('performance'),
    ],
  },
  {
    name: 'Reference',
    entries: [
      { path: 'api', file: 'reference/api.md', title: 'API' },
      doc('reference/errors', 'Errors'),
      doc('reference/cli', 'Commands'),
      { path: 'decisions', file: 'decisions/README.md', title: 'Decisions' },
    ],
  },
];

/** Documents for people who develop Berth. They are not on the site. */
const EXCLUDED_DOCUMENTS = new Set(['adding-an-endpoint.md']);

/** All pages, given the files below docs/. Decisions have pages, but no entry in the navigation. */
export function siteEntries(files: readonly string[]): { sections: readonly Section[]; hidden: readonly Entry[] } {
  const listedFiles = new Set(SECTIONS.flatMap(({ entries }) => entries.map(({ file }) => file)));
  const otherFiles = files.filter(file => !listedFiles.has(file) && !EXCLUDED_DOCUMENTS.has(file));
  const entryOf = (file: string): Entry => ({ path: file.replace(/\.md$/, ''), file });
  const isDecision = (file: string): boolean => file.startsWith('decisions/');
  const guides = otherFiles.filter(file => !isDecision(file)).map(entryOf);
  return {
    sections: SECTIONS.map(({ name, entries }) => ({
      name,
      entries: (name === 'Guides' ? guides : entries).filter(({ file }) => file === undefined || files.includes(file)),
    })).filter(({ entries }) => entries.length > 0),
    hidden: otherFiles.filter(isDecision).map(entryOf),
  };
}
