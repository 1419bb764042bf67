// Renders a document as HTML: anchors on headings, links between documents as links between pages, code blocks with a
// copy button. HTML in a document is shown as text: only Markdown becomes HTML.
import { posix } from 'node:path';
import markdownIt, { type Token } from 'markdown-it';
import { escapeHtml, highlightCode } from './colours.ts';

export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
}

export interface RenderedPage {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  /** The blocks of text for the search index, each with the heading above it. */
  readonly texts: ReadonlyArray<{ readonly heading: Heading | undefined; readonly text: string }>;
}

/** Returns the page of a file below docs/. Undefined if the file has no page. */
export type PageOf = (file: string) => string | undefined;

export function render(file: string, text: string, pageOf: PageOf): RenderedPage {
  // Comments for developers and generators are not shown.
  const source = text.replace(/^<!--[\s\S]*?-->\n/gm, '');
  const markdownParser = markdownIt({ html: false, linkify: false, typographer: false });
  const tokens = markdownParser.parse(source, {});
  const headings: Heading[] = [];
  const texts: Array<{ heading: Heading | undefined; text: string }> = [];
  const usedIds = new Set<string>();
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token.type === 'heading_open' && next) {
      const heading = {
        level: Number(token.tag.slice(1)),
        id: claimId(next.content, usedIds),
        text: plainText(next.content),
      };
      token.attrSet('id', heading.id);
      headings.push(heading);
    } else if (token.type === 'inline' && tokens[index - 1]?.type !== 'heading_open') {
      texts.push({ heading: headings.at(-1), text: plainText(token.content) });
      relink(token.children ?? [], file, pageOf);
    }
  });
  markdownParser.renderer.rules.fence = (all, index) => codeBlock(all[index]?.content ?? '', all[index]?.info ?? '');
  // A wide table can be scrolled separately from the page, even with the keyboard. Each table is therefore a landmark,
  // and its name must be unique on the page.
  markdownParser.renderer.rules.table_open = (tokens, at) => {
    const number = tokens.slice(0, at + 1).filter(({ type }) => type === 'table_open').length;
    return `<div class="table" role="region" aria-label="Table ${number}" tabindex="0"><table>`;
  };
  markdownParser.renderer.rules.table_close = () => '</table></div>';
  const title = headings.find(({ level }) => level === 1)?.text ?? file;
  return { title, html: markdownParser.renderer.render(tokens, markdownParser.options, {}), headings, texts };
}

const plainText = (text: string): string =>
  text.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replace(/[`*_]{1,2}([^`*_]+)[`*_]{1,2}/g, '$1');

function claimId(text: string, used: Set<string>): string {
  const base =
    plainText(text)
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, '-')
      .replace(/^-|-$/g, '') || 'section';
  let id = base;
  for (let count = 2; used.has(id); count++) id = `${base}-${count}`;
  used.add(id);
  return id;
}

/** Links to documents become links to pages. A link to another file of the repository becomes plain text. */
function relink(tokens: readonly Token[], file: string, pageOf: PageOf): void {
  let isDropped = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const href = resolveLink(file, String(token.attrGet('href')), pageOf);
      isDropped = href === undefined;
      token.attrSet('href', href ?? '');
    }
    if (isDropped && /^link_/.test(token.type)) {
      isDropped = token.type === 'link_open';
      token.type = 'text';
      token.content = '';
    }
  }
}

function resolveLink(file: string, href: string, pageOf: PageOf): string | undefined {
  if (/^[a-z]+:|^[#/]/.test(href)) return href;
  const [path = '', hash] = href.split('#', 2);
  const page = pageOf(posix.normalize(posix.join(posix.dirname(file), path)));
  return hash === undefined || page === undefined ? page : `${page}#${hash}`;
}

const LANGUAGE_NAMES: Readonly<Record<string, string>> = {
  sh: 'Shell',
  bash: 'Shell',
  ts: 'TypeScript',
  js: 'JavaScript',
  python: 'Python',
  json: 'JSON',
};

function codeBlock(code: string, info: string): string {
  const language = info.trim().split(/\s+/)[0] ?? '';
  const name = LANGUAGE_NAMES[language] ?? (language || 'Text');
  return `<figure class="code"><figcaption><span>${escapeHtml(name)}</span><button type="button" class="copy" hidden>Copy</button></figcaption><pre><code>${highlightCode(code.trimEnd(), language)}</code></pre></figure>\n`;
}
