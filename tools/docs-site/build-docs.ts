// Builds the docs site: every document of docs/ as a static page, the style sheet and script as files that have their
// digest in the name, and the search index.
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import about from '../../package.json' with { type: 'json' };
import { type Entry, siteEntries } from './navigation.ts';
import { type Frame, pageHtml } from './page.ts';
import { type RenderedPage, render } from './render.ts';

const HERE = import.meta.dirname;
const ROOT = dirname(dirname(HERE));
const SEARCHED_CHARACTERS_MAX = 600;

interface Page {
  readonly entry: Entry;
  readonly renderedPage: RenderedPage;
}

export function buildDocs(outDir: string): void {
  const files = globSync('**/*.md', { cwd: join(ROOT, 'docs') }).sort();
  const { sections, hidden } = siteEntries(files);
  const entries = [...sections.flatMap(section => section.entries), ...hidden];
  const addresses = new Map(entries.map(({ file, path }) => [file, path === '' ? '/docs' : `/docs/${path}`]));
  const pages = entries.flatMap(entry => {
    if (entry.file === undefined) return [];
    const text = readFileSync(join(ROOT, 'docs', entry.file), 'utf8');
    return [{ entry, renderedPage: render(entry.file, text, file => addresses.get(file)) }];
  });
  const titles = new Map(pages.map(({ entry, renderedPage: rendered }) => [entry.path, rendered.title]));
  const addAsset = (name: string, bytes: string): string => writeAsset(outDir, name, bytes);
  const frame: Frame = {
    version: about.version,
    sections,
    titleOf: entry => entry.title ?? titles.get(entry.path) ?? entry.path,
    assets: {
      style: addAsset(
        'site.css',
        [join(ROOT, 'console/src/colours.css'), join(HERE, 'site.css')].map(readText).join('\n'),
      ),
      script: addAsset('site.js', readFileSync(join(HERE, 'site.js'), 'utf8')),
      icon: addAsset('mark.svg', readFileSync(join(ROOT, 'console/src/mark.svg'), 'utf8')),
      search: addAsset('search.json', JSON.stringify(pages.flatMap(searchEntriesOf))),
    },
  };
  for (const { entry, renderedPage: rendered } of pages) {
    const folder = join(outDir, entry.path);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'index.html'), pageHtml(entry, rendered, frame));
  }
  const notFoundPage = render('404.md', NOT_FOUND_TEXT, file => addresses.get(file));
  writeFileSync(join(outDir, '404.html'), pageHtml({ path: '404' }, notFoundPage, frame));
}

const NOT_FOUND_TEXT = `# Page not found

There is no page at this address. Search above, or begin at the [start of the docs](index.md).
`;

const readText = (path: string): string => readFileSync(path, 'utf8');

/** The search index of one page: address, page title, heading and text of each section. */
function searchEntriesOf({ entry, renderedPage: rendered }: Page): Array<readonly [string, string, string, string]> {
  const address = entry.path === '' ? '/docs' : `/docs/${entry.path}`;
  const title = entry.title ?? rendered.title;
  return rendered.headings.map(heading => {
    const sectionTexts = rendered.texts.filter(one => one.heading === heading).map(one => one.text);
    const hash = heading.level === 1 ? '' : `#${heading.id}`;
    return [
      `${address}${hash}`,
      title,
      heading.level === 1 ? '' : heading.text,
      sectionTexts.join(' ').slice(0, SEARCHED_CHARACTERS_MAX),
    ];
  });
}

function writeAsset(outDir: string, name: string, text: string): string {
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 10);
  const path = `assets/${name.replace('.', `-${digest}.`)}`;
  mkdirSync(join(outDir, 'assets'), { recursive: true });
  writeFileSync(join(outDir, path), text);
  return `/docs/${path}`;
}
