// Highlights strings, comments and keywords of code, approximately and without a parser.
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, one => ENTITIES[one] ?? one);

const SCRIPT_TOKENS = {
  comment: /\/\/[^\n]*/,
  string: /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/,
  word: /\b(?:import|from|export|const|let|await|async|new|return|if|for|of|throw|try|finally|function|type|interface)\b/,
  number: /\b\d[\d_.]*\b/,
};

const LANGUAGES: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  ts: SCRIPT_TOKENS,
  js: SCRIPT_TOKENS,
  json: { key: /"(?:[^"\\]|\\.)*"(?=\s*:)/, string: /"(?:[^"\\]|\\.)*"/, number: /\b(?:true|false|null|\d[\d.]*)\b/ },
  sh: { comment: /(?:^|(?<=\s))#[^\n]*/m, string: /'[^']*'|"(?:[^"\\]|\\.)*"/, word: /(?<=\s)-{1,2}[\w-]+/ },
  python: {
    comment: /#[^\n]*/,
    string: /f?"(?:[^"\\\n]|\\.)*"|f?'(?:[^'\\\n]|\\.)*'/,
    word: /\b(?:import|from|as|with|await|async|def|return|if|not|in|for|raise|class)\b/,
    number: /\b\d[\d.]*\b/,
  },
};

export function highlightCode(code: string, language: string): string {
  const tokenPatterns = LANGUAGES[language === 'bash' ? 'sh' : language];
  if (!tokenPatterns) return escapeHtml(code);
  const tokenKinds = Object.keys(tokenPatterns);
  const pattern = new RegExp(tokenKinds.map(name => `(?<${name}>${tokenPatterns[name]?.source})`).join('|'), 'gm');
  let out = '';
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    const kind = tokenKinds.find(name => match.groups?.[name] !== undefined);
    out += `${escapeHtml(code.slice(at, match.index))}<span class="${kind}">${escapeHtml(match[0])}</span>`;
    at = match.index + match[0].length;
  }
  return out + escapeHtml(code.slice(at));
}
