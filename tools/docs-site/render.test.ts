import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHTML } from 'linkedom';
import { type Frame, pageHtml } from './page.ts';
import { render } from './render.ts';

const SCRIPT = '<script>alert(1)</script>';
const IMAGE = '<img/src=x/onerror=alert(1)>';

/** A document with hostile markup in every position where an author can write text. */
const HOSTILE_DOCUMENT = [
  `# Title ${SCRIPT} ${IMAGE}`,
  `## Section ${SCRIPT} "><b id=x>`,
  '## Another section',
  `${SCRIPT}\n`,
  `Text ${IMAGE} and \`${SCRIPT}\`, <!-- a comment -->.`,
  `- [name](javascript:alert(1)) [${IMAGE}](https://example.com/"onclick="alert(1)) <javascript:alert(1)>`,
  `- ![${IMAGE}](data:text/html,${SCRIPT}) ![picture](/x.png "a\\" onerror=\\"alert(1)")`,
  `\n| ${SCRIPT} |\n| --- |\n| ${IMAGE} |\n`,
  ...[IMAGE, SCRIPT, 'ts', 'json', 'sh', ''].map(language => `\`\`\`${language}\n"${SCRIPT}" # ${IMAGE}\n\`\`\`\n`),
  `    ${SCRIPT}`,
].join('\n');

const frame: Frame = {
  version: SCRIPT,
  sections: [{ name: SCRIPT, entries: [{ path: 'hostile' }, { path: 'next' }] }],
  titleOf: () => `${SCRIPT}${IMAGE}`,
  assets: { style: '/site.css', script: '/site.js', icon: '/mark.svg', search: '/search.json' },
};

test('markup in a document is shown as text, everywhere on its page', () => {
  const html = pageHtml(
    { path: 'hostile' },
    render('hostile.md', HOSTILE_DOCUMENT, () => undefined),
    frame,
  );
  const { document } = parseHTML(html);
  const elements = [...document.querySelectorAll('*')];
  assert.deepEqual(
    [...document.querySelectorAll('script')].map(({ outerHTML }) => outerHTML),
    ['<script type="module" src="/site.js" data-search="/search.json"></script>'],
  );
  const attributeNames = elements.flatMap(({ attributes }) => [...attributes].map(({ name }) => name));
  assert.deepEqual(
    attributeNames.filter(name => name.startsWith('on')),
    [],
  );
  const addresses = elements.flatMap(element => [element.getAttribute('href'), element.getAttribute('src')]);
  assert.deepEqual(
    addresses.filter(address => /^(?:javascript|data):/i.test(address ?? '')),
    [],
  );
  const article = document.querySelector('article')?.textContent ?? '';
  for (const shown of [SCRIPT, IMAGE, '"><b id=x>', '<!-- a comment -->']) assert.ok(article.includes(shown), shown);
});
