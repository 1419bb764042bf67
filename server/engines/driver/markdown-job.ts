// Converts the HTML of a page to Markdown in a worker thread. Converts the whole page if `isWhole` is set or if no main
// content is found, otherwise only the main content.
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';

export interface MarkdownInput {
  readonly html: string;
  /** The address of the page. It is used to make links absolute. */
  readonly url: string;
  readonly isWhole: boolean;
}

/** If the extracted article is shorter, it is assumed not to be the main content. */
const ARTICLE_CHARACTERS_MIN = 200;
const ELEMENTS_MAX = 50_000;

export function work({ html, url, isWhole }: MarkdownInput): string {
  const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
  turndown.remove(['script', 'style', 'noscript', 'template', 'iframe']);
  const { document } = parseHTML(html);
  if (!document.documentElement) return turndown.turndown(html).trim();
  for (const name of ['href', 'src'])
    for (const element of document.querySelectorAll(`[${name}]`))
      element.setAttribute(name, URL.parse(element.getAttribute(name) ?? '', url)?.href ?? '');
  const wholeHtml = document.documentElement.outerHTML;
  return turndown.turndown((isWhole ? undefined : articleOf(document)) ?? wholeHtml).trim();
}

/**
 * Extracts the main content as HTML. Changes the document. linkedom's document has the members that Readability uses.
 */
function articleOf(document: unknown): string | undefined {
  const article = new Readability(document as never, { maxElemsToParse: ELEMENTS_MAX }).parse();
  if (!article?.content || (article.textContent ?? '').length < ARTICLE_CHARACTERS_MIN) return undefined;
  const heading = article.title ? `<h1>${escapeHtml(article.title)}</h1>` : '';
  return heading + article.content;
}

const escapeHtml = (text: string): string => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`);
