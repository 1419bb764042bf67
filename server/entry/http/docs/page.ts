// The whole reference as one page that needs nothing from elsewhere. Made from the table of operations and the catalogue.
import { type CatalogueEntry, ERRORS } from '../../../../contract/errors.ts';
import { TAGS, type Tag } from '../../../../contract/operation.ts';
import { OPERATION_IDS, operation } from '../../../../contract/operations.ts';
import { anchor, colouredJson, colouredScript, colouredShell, escapeText, prose } from './html.ts';
import { codeBlock, methodBadge, operationSection } from './operation-section.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';

export interface PageFacts {
  readonly baseUrl: string;
  readonly version: string;
}

export function referencePage({ baseUrl, version }: PageFacts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Berth API reference</title>
${ICON_LINK}
<style>${STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<a class="brand" href="#start">${MARK}<span>Berth</span></a>
<details class="menu"><summary>Contents</summary><nav aria-label="Contents">${contents()}</nav></details>
<a class="top-link" href="/docs">All docs</a>
</header>
<div class="frame">
<nav class="side" aria-label="Contents"><a class="brand" href="#start">${MARK}<span>Berth</span><small>API reference</small></a>${contents()}
<p class="foot">Version ${escapeText(version)}<br><a href="/docs">All docs</a> · <a href="/console">Console</a><br><a href="/openapi.yaml">OpenAPI 3.1</a> · <a href="/v1/browsers/openapi.json">JSON</a></p></nav>
<main id="main">
${start(baseUrl)}
${conventions()}
${Object.keys(TAGS)
  .map(tag => tagSection(tag as Tag, baseUrl))
  .join('\n')}
${errorsTable()}
</main>
</div>
<script>${SCRIPT}</script>
</body>
</html>`;
}

/** A boat at its berth: two quays and a hull between them. */
export const MARK =
  '<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M3 4v16M21 4v16" /><path d="M7 12h10l-1.6 5.2a2 2 0 0 1-1.9 1.4h-3a2 2 0 0 1-1.9-1.4z" class="hull" /><path d="M12 12V5l4 4" /></svg>';

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2a8a9d" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"><path d="M3 4v16M21 4v16"/><path d="M7 12h10l-1.6 5.2a2 2 0 0 1-1.9 1.4h-3a2 2 0 0 1-1.9-1.4z"/><path d="M12 12V5l4 4"/></svg>';

export const ICON_LINK = `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">`;

function contents(): string {
  const groups = Object.keys(TAGS).map(tag => {
    const items = idsOf(tag as Tag).map(
      id =>
        `<li><a href="#${id}">${methodBadge(operation(id).method)}<span>${escapeText(operation(id).summary)}</span></a></li>`,
    );
    return `<li><a class="group" href="#${anchor(tag)}">${escapeText(tag)}</a><ul>${items.join('')}</ul></li>`;
  });
  return `<ul class="contents">
<li><a class="group" href="#start">Start</a></li>
<li><a class="group" href="#conventions">Conventions</a></li>
${groups.join('\n')}
<li><a class="group" href="#errors">Errors</a></li>
</ul>`;
}

const idsOf = (tag: Tag) => OPERATION_IDS.filter(id => operation(id).tag === tag);

const tagSection = (tag: Tag, baseUrl: string): string => `<section class="tag" id="${anchor(tag)}">
<header><h2>${escapeText(tag)}</h2><p>${prose(TAGS[tag])}</p></header>
${idsOf(tag)
  .map(id => operationSection(id, baseUrl))
  .join('\n')}
</section>`;

// ---- start ---------------------------------------------------------------------------------------------------------

const start = (baseUrl: string): string => `<section class="start" id="start">
<h1>Browsers for agents, on your own machines</h1>
<p class="lede">Create a session, drive a real Chromium over CDP with the client you already use, release it. This page is
generated from the very table that validates requests, so what it says is what the service does.</p>
<p class="base"><span>Base URL</span><code>${escapeText(baseUrl)}</code></p>
<ol class="steps">
<li><div><h3>Create</h3><p>One request starts a browser of your own. Every field of the body is optional.</p></div>${codeBlock(
  'Shell',
  colouredShell(`curl -X POST "${baseUrl}/v1/browsers/sessions" \\
  -H "Authorization: Bearer $BERTH_KEY"`),
)}</li>
<li><div><h3>Drive</h3><p>Give the answer’s <code>connectUrl</code> to Playwright, Puppeteer or any other CDP client.</p></div>${codeBlock(
  'JavaScript',
  colouredScript(`import { chromium } from 'playwright-core';

const browser = await chromium.connectOverCDP(session.connectUrl);
const [page] = browser.contexts()[0].pages();
await page.goto('https://example.com');`),
)}</li>
<li><div><h3>Release</h3><p>Ends the session and answers once its browser is closed. Leaving does the same, unless <code>keepAlive</code> is set.</p></div>${codeBlock(
  'Shell',
  colouredShell(`curl -X POST "${baseUrl}/v1/browsers/sessions/$ID" \\
  -H "Authorization: Bearer $BERTH_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"status":"REQUEST_RELEASE"}'`),
)}</li>
</ol>
</section>`;

// ---- conventions ---------------------------------------------------------------------------------------------------

const ERROR_EXAMPLE = {
  statusCode: 409,
  error: 'Conflict',
  message:
    'Session 019ab2c4-… is not running (status COMPLETED). An ended session cannot be resumed: create a new one.',
  code: 'session_not_running',
  requestId: 'req_019ab2c47d107a0e9a530f1c3a2f7d11',
  details: { status: 'COMPLETED' },
};

const CONVENTIONS: ReadonlyArray<readonly [string, string]> = [
  [
    'Credentials',
    'Browser routes take an agent key (`bak_…`), account and application routes a personal access token (`bpt_…`), in `Authorization: Bearer`. `X-BB-API-Key` is accepted with an agent key too; if both are sent they must be equal. Never in a query string: the only secret that is allowed there is the signing key of one session.',
  ],
  [
    'Writes',
    'Create, update and the other operations marked Write must not be sent again after a lost answer: read back first. Sessions are found again by a unique value in `userMetadata`. A refused write says in `x-should-retry` whether sending it again can help.',
  ],
  [
    'Bodies',
    'JSON, smaller than 1 MB, nested at most 32 levels. An empty body means `{}`. Values of the wrong type are refused, never converted. Fields that an operation on sessions does not know are ignored and named in `warnings`; with `Prefer: handling=strict` they are refused. All other operations refuse them.',
  ],
  [
    'Values',
    'Ids are UUIDs that sort by creation time. Times are ISO 8601 in UTC with milliseconds. Optional values that are absent are left out, never null. Things of other applications answer 404, as if they did not exist.',
  ],
  [
    'Revisions',
    'Things that people edit carry `revision`, and the same in quotes as `ETag`. Changing them needs it as `If-Match`: 428 without, 412 when somebody else was quicker.',
  ],
  ['Requests', 'Every answer has `x-request-id`. Send your own (8–128 of letters, digits and `._:-`) and it is kept.'],
];

const conventions = (): string => `<section class="tag" id="conventions">
<header><h2>Conventions</h2><p>What holds for every operation.</p></header>
<div class="operation"><div class="about"><dl class="rules">${CONVENTIONS.map(
  ([title, words]) => `<div><dt>${title}</dt><dd>${prose(words)}</dd></div>`,
).join('')}</dl></div>
<div class="examples">${codeBlock('Every error', colouredJson(ERROR_EXAMPLE))}</div></div>
</section>`;

// ---- errors --------------------------------------------------------------------------------------------------------

function errorsTable(): string {
  const rows = Object.entries<CatalogueEntry>(ERRORS).map(
    ([code, { status, summary, whatToDo, retry }]) =>
      `<tr id="error-${anchor(code)}"><td><span class="status">${status}</span></td><td><code>${code}</code></td><td>${prose(summary)} <span class="cure">${prose(whatToDo)}</span></td><td>${retry === 'yes' ? 'yes' : 'no'}</td></tr>`,
  );
  return `<section class="tag" id="errors">
<header><h2>Errors</h2><p>Codes are stable: branch on <code>code</code>, show <code>message</code>. “Again” says whether a refused write may be sent again unchanged.</p></header>
<div class="scroll"><table class="catalogue"><thead><tr><th>Status</th><th>Code</th><th>What it means, what to do</th><th>Again</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>
</section>`;
}
