// Snippets of the playground: built-in ones, and the user's own, which are stored only in this browser.
export interface Snippet {
  readonly name: string;
  readonly code: string;
}

export const EXAMPLES: readonly Snippet[] = [
  {
    name: 'Press a button',
    code: `// Puppeteer: \`page\` is the first tab, \`browser\` the whole session.
await page.setContent(\`
  <body style="font: 32px sans-serif; text-align: center">
    <h1>Hello</h1>
    <button style="font: inherit">Greet</button>
  </body>\`);
await page.$eval('button', button => {
  button.onclick = () => (button.textContent = 'Greeted');
});
await page.click('button');
console.log(await page.$eval('button', button => button.textContent));
`,
  },
  {
    name: 'Read a page',
    code: `await page.goto('https://example.com');
console.log(await page.title());
return page.$$eval('a', links => links.map(link => link.href));
`,
  },
  {
    name: 'Fill in a form',
    code: `await page.setContent('<form><label>Name <input name="name"></label><output></output></form>');
await page.type('input', 'Ada Lovelace', { delay: 60 });
console.log(await page.$eval('input', input => input.value));
`,
  },
];

const STORAGE_KEY = 'berth.snippets';
const SNIPPETS_MAX = 50;

export function readSnippets(): readonly Snippet[] {
  try {
    const storedSnippets: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '[]');
    return Array.isArray(storedSnippets) ? storedSnippets.filter(isSnippet).slice(0, SNIPPETS_MAX) : [];
  } catch {
    return [];
  }
}

/** Replaces a snippet with the same name. */
export function saveSnippet(snippet: Snippet): readonly Snippet[] {
  return storeSnippets([snippet, ...readSnippets().filter(({ name }) => name !== snippet.name)].slice(0, SNIPPETS_MAX));
}

export const forgetSnippet = (name: string): readonly Snippet[] =>
  storeSnippets(readSnippets().filter(snippet => snippet.name !== name));

function storeSnippets(snippets: readonly Snippet[]): readonly Snippet[] {
  localStorage.setItem(STORAGE_KEY, JSON.stringify(snippets));
  return snippets;
}

const isSnippet = (value: unknown): value is Snippet =>
  typeof Object(value).name === 'string' && typeof Object(value).code === 'string';
