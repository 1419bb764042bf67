// The page at the root, which describes this service and links to its parts.
import { createHash } from 'node:crypto';
import type { HttpResponse } from './http-response.ts';

/** A boat at its berth: two quays and a hull between them. */
const LOGO_PATHS =
  '<path d="M3 4v16M21 4v16"/><path class="hull" d="M7 12h10l-1.6 5.2a2 2 0 0 1-1.9 1.4h-3a2 2 0 0 1-1.9-1.4z"/><path d="M12 12V5l4 4"/>';
const MARK = `<svg class="mark" viewBox="0 0 24 24" aria-hidden="true">${LOGO_PATHS}</svg>`;
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2a8a9d" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round">${LOGO_PATHS}</svg>`;

const STYLE = `
:root { --paper: #fcfcfa; --ink: #1b2326; --soft: #566167; --line: #e3e5e0; --accent: #0b6477; --accent-soft: #e2f0f2; }
@media (prefers-color-scheme: dark) { :root { --paper: #0e1417; --ink: #e4eaec; --soft: #a3b1b7; --line: #243036; --accent: #74c7d6; --accent-soft: #17313a; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 24px; background: var(--paper); color: var(--ink); font: 16px/1.6 Inter, "Segoe UI", system-ui, -apple-system, Roboto, Arial, sans-serif; }
main { max-width: 460px; }
.mark { width: 44px; height: 44px; fill: none; stroke: var(--accent); stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; }
.mark .hull { fill: var(--accent-soft); }
h1 { margin: 16px 0 8px; font-size: 30px; letter-spacing: -0.02em; line-height: 1.2; }
p { margin: 0 0 24px; color: var(--soft); }
ul { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
li a { display: flex; justify-content: space-between; gap: 16px; padding: 13px 2px; border-bottom: 1px solid var(--line); color: var(--accent); text-decoration: none; }
li a:hover span:first-child { text-decoration: underline; }
li span + span { color: var(--soft); font-size: 14px; }
`;

const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const LINKS = [
  ['/console', 'Console', 'sessions, keys, limits'],
  ['/docs', 'Docs', 'for people'],
  ['/openapi.yaml', 'OpenAPI 3.1', 'for programs'],
] as const;

export const landingPage = (version: string): HttpResponse => ({
  contentType: 'text/html; charset=utf-8',
  headers: { 'content-security-policy': POLICY },
  body: `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Berth</title><link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}"><style>${STYLE}</style></head>
<body><main>${MARK}<h1>Berth</h1><p>Cloud browser sessions for software agents, on your own machines. Version ${version}.</p>
<ul>${LINKS.map(([href, title, audience]) => `<li><a href="${href}"><span>${title}</span><span>${audience}</span></a></li>`).join('')}</ul></main></body>
</html>`,
});
