// Text into HTML: escaping, the little markup that descriptions use, and coloured code.

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, character => ENTITIES[character] ?? character);

/** Descriptions: backticks become code. */
export const prose = (text: string): string => escapeText(text).replace(/`([^`]+)`/g, '<code>$1</code>');

/** JSON with its keys, strings and bare values told apart. */
export const colouredJson = (value: unknown): string =>
  escapeText(JSON.stringify(value, null, 2))
    .replace(/(&quot;(?:(?!&quot;).)*&quot;)(\s*:)/g, '<span class="k">$1</span>$2')
    .replace(/(: |^\s*|\[)(&quot;(?:(?!&quot;).)*&quot;)/gm, '$1<span class="s">$2</span>')
    .replace(/(: )(true|false|null|-?\d[\d.]*)/g, '$1<span class="n">$2</span>');

/** Shell with its comments and strings told apart. */
export const colouredShell = (text: string): string =>
  escapeText(text)
    .replace(/^(#.*)$/gm, '<span class="c">$1</span>')
    .replace(/(&quot;(?:(?!&quot;).)*&quot;|&#39;(?:(?!&#39;)[\s\S])*&#39;)/g, '<span class="s">$1</span>');

/** JavaScript likewise. */
export const colouredScript = (text: string): string =>
  escapeText(text)
    .replace(/(&#39;(?:(?!&#39;).)*&#39;)/g, '<span class="s">$1</span>')
    .replace(/\b(import|from|const|await|new)\b(?![^<]*<\/span>)/g, '<span class="w">$1</span>');

export const anchor = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
