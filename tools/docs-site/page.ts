// The frame of a page of the docs site: navigation, table of contents, previous and next page.
import { escapeHtml } from './colours.ts';
import type { Entry, Section } from './navigation.ts';
import type { RenderedPage } from './render.ts';

export interface Frame {
  readonly version: string;
  readonly sections: readonly Section[];
  readonly titleOf: (entry: Entry) => string;
  readonly assets: { readonly style: string; readonly script: string; readonly icon: string; readonly search: string };
}

const MARK =
  '<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M3 4v16M21 4v16"/><path d="M7 12h10l-1.6 5.2a2 2 0 0 1-1.9 1.4h-3a2 2 0 0 1-1.9-1.4z" class="hull"/><path d="M12 12V5l4 4"/></svg>';

export function pageHtml(entry: Entry, { title, html, headings }: RenderedPage, frame: Frame): string {
  const { assets, version } = frame;
  const sectionHeadings = headings.filter(({ level }) => level === 2 || level === 3);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Berth docs</title>
<link rel="icon" type="image/svg+xml" href="${assets.icon}">
<link rel="stylesheet" href="${assets.style}">
<script type="module" src="${assets.script}" data-search="${assets.search}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<a class="brand" href="/docs">${MARK}<span>Berth</span><small>Docs</small></a>
<search class="search" hidden>
<input type="search" placeholder="Search" aria-label="Search the docs" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<ul id="found" role="listbox" aria-label="Found" hidden></ul>
</search>
<nav class="ways" aria-label="Elsewhere"><a href="/docs/api">API</a><a href="/console">Console</a></nav>
<details class="menu"><summary>Menu</summary><nav aria-label="Pages">${siteNavigation(entry, frame)}</nav></details>
</header>
<div class="frame">
<nav class="side" aria-label="Pages">${siteNavigation(entry, frame)}<p class="foot">Berth ${escapeHtml(version)}</p></nav>
<main id="main" tabindex="-1">
<article>${html}</article>
${pageLinks(entry, frame)}
</main>
${sectionHeadings.length > 1 ? tableOfContents(sectionHeadings) : '<div></div>'}
</div>
</body>
</html>
`;
}

const addressOf = ({ path }: Entry): string => (path === '' ? '/docs' : `/docs/${path}`);

const siteNavigation = (currentEntry: Entry, { sections, titleOf }: Frame): string =>
  sections
    .map(({ name, entries }) => {
      const items = entries.map(entry => {
        const currentMark = entry.path === currentEntry.path ? ' aria-current="page"' : '';
        return `<li><a href="${addressOf(entry)}"${currentMark}>${escapeHtml(titleOf(entry))}</a></li>`;
      });
      return `<h2>${escapeHtml(name)}</h2><ul>${items.join('')}</ul>`;
    })
    .join('');

const tableOfContents = (headings: RenderedPage['headings']): string =>
  `<nav class="here" aria-label="On this page"><h2>On this page</h2><ul>${headings
    .map(({ id, text, level }) => `<li class="level-${level}"><a href="#${id}">${escapeHtml(text)}</a></li>`)
    .join('')}</ul></nav>`;

function pageLinks(currentEntry: Entry, { sections, titleOf }: Frame): string {
  const allEntries = sections.flatMap(({ entries }) => entries);
  const at = allEntries.findIndex(({ path }) => path === currentEntry.path);
  if (at === -1) return '';
  const neighbourLink = (entry: Entry | undefined, word: string): string =>
    entry
      ? `<a href="${addressOf(entry)}"><small>${word}</small><span>${escapeHtml(titleOf(entry))}</span></a>`
      : '<span></span>';
  return `<nav class="onward" aria-label="Further pages">${neighbourLink(allEntries[at - 1], 'Before')}${neighbourLink(allEntries[at + 1], 'Next')}</nav>`;
}
