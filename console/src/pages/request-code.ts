// Converts a create request into code.
import type { CreateSession } from '../../../contract/sessions.ts';

export type Language = 'curl' | 'TypeScript' | 'Python';
export const LANGUAGES: readonly Language[] = ['curl', 'TypeScript', 'Python'];

export function requestCode(language: Language, request: CreateSession, origin: string): string {
  if (language === 'curl') return curlCode(request, origin);
  return language === 'TypeScript' ? typescriptCode(request, origin) : pythonCode(request, origin);
}

const curlCode = (request: CreateSession, origin: string): string =>
  [
    `curl -X POST ${origin}/v1/browsers/sessions \\`,
    '  -H "Authorization: Bearer $BERTH_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    // A single quote inside a single-quoted shell string is written as '\''.
    `  -d '${JSON.stringify(request, null, 2).replaceAll('\n', '\n  ').replaceAll("'", "'\\''")}'`,
  ].join('\n');

const typescriptCode = (request: CreateSession, origin: string): string =>
  [
    "import { chromium } from 'playwright-core';",
    '',
    `const response = await fetch('${origin}/v1/browsers/sessions', {`,
    "  method: 'POST',",
    '  headers: {',
    '    authorization: `Bearer ${process.env.BERTH_KEY}`,',
    "    'content-type': 'application/json',",
    '  },',
    `  body: JSON.stringify(${typescriptValue(request, 1)}),`,
    '});',
    'const session = await response.json();',
    'if (!response.ok) throw new Error(session.message);',
    '',
    'const browser = await chromium.connectOverCDP(session.connectUrl);',
    'const page = browser.contexts()[0].pages()[0];',
  ].join('\n');

const pythonCode = (request: CreateSession, origin: string): string =>
  [
    'import os',
    'import requests',
    'from playwright.sync_api import sync_playwright',
    '',
    'response = requests.post(',
    `    "${origin}/v1/browsers/sessions",`,
    '    headers={"Authorization": f"Bearer {os.environ[\'BERTH_KEY\']}"},',
    `    json=${pythonValue(request, 1)},`,
    ')',
    'session = response.json()',
    'if not response.ok:',
    '    raise RuntimeError(session["message"])',
    '',
    'with sync_playwright() as playwright:',
    '    browser = playwright.chromium.connect_over_cdp(session["connectUrl"])',
    '    page = browser.contexts[0].pages[0]',
  ].join('\n');

function typescriptValue(value: unknown, depth: number): string {
  if (typeof value === 'string') return `'${value.replace(/[\\']/g, character => `\\${character}`)}'`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(one => typescriptValue(one, depth)).join(', ')}]`;
  const innerIndent = '  '.repeat(depth + 1);
  const lines = Object.entries(value).map(
    ([name, one]) =>
      `${innerIndent}${/^[a-zA-Z_$][\w$]*$/.test(name) ? name : typescriptValue(name, 0)}: ${typescriptValue(one, depth + 1)},`,
  );
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
}

function pythonValue(value: unknown, depth: number): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value === null || typeof value !== 'object') return value === null ? 'None' : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(one => pythonValue(one, depth)).join(', ')}]`;
  const innerIndent = '    '.repeat(depth + 1);
  const lines = Object.entries(value).map(
    ([name, one]) => `${innerIndent}${JSON.stringify(name)}: ${pythonValue(one, depth + 1)},`,
  );
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${'    '.repeat(depth)}}`;
}
