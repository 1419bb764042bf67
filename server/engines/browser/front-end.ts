// Reads the DevTools files that are bundled with Chromium. They are read through a page of that Chromium, because their
// names in Chromium's resource file are not documented. Starts at the page of the front end and follows the references
// in every file.
import { isObject, type Json, textAt } from '../../kit/json.ts';
import { pollUntil } from '../../kit/wait.ts';
import type { Control, Page } from './control.ts';
import { findReferences } from './front-end-names.ts';

const FRONT_END_PAGE = 'devtools_app.html';
const ORIGIN = 'devtools://devtools/bundled/';
/**
 * Files to which no other file refers, because their names are built from the language at run time. No other locales
 * are bundled.
 */
const UNREFERENCED_FILES = ['core/i18n/locales/en-US.json', 'core/i18n/locales/zh.json'];
/**
 * The page through which the files are read. This page runs no script. The front end's own page would start DevTools.
 */
const INERT_FILE = 'application_tokens.css';
const BATCH_FILES_MAX = 24;
const PAGE_TIMEOUT_MS = 10_000;
const BATCH_TIMEOUT_MS = 15_000;
/** Limits on the DevTools files. Chromium 156 has about 700 files with 12 MB in total. */
const FILES_MAX = 4_000;
const BYTES_MAX = 64 * 1024 ** 2;

const READ_FILES_SCRIPT = `async paths => Promise.all(paths.map(async path => {
  const answer = await fetch(${JSON.stringify(ORIGIN)} + path).catch(() => undefined);
  if (!answer || !answer.ok) return '';
  const blob = await answer.blob();
  return new Promise(resolve => {
    const reader = new FileReader();
    reader.onload = () => resolve('.' + reader.result.slice(reader.result.indexOf(',') + 1));
    reader.readAsDataURL(blob);
  });
}))`;

export async function readFrontEnd(control: Control): Promise<ReadonlyMap<string, Buffer>> {
  const page = await openInertPage(control);
  const files = new Map<string, Buffer>();
  const foundPaths = new Set([FRONT_END_PAGE, ...UNREFERENCED_FILES]);
  const pendingPaths = [...foundPaths];
  let totalBytes = 0;
  while (pendingPaths.length > 0) {
    const paths = pendingPaths.splice(0, BATCH_FILES_MAX);
    for (const [path, content] of await readFiles(control, page, paths)) {
      files.set(path, content);
      totalBytes += content.length;
      if (files.size > FILES_MAX || totalBytes > BYTES_MAX)
        throw new Error(`DevTools has more than ${FILES_MAX} files or ${BYTES_MAX} bytes`);
      for (const name of findReferences(path, content))
        if (!foundPaths.has(name)) pendingPaths.push(...(foundPaths.add(name) && [name]));
    }
  }
  if (!files.has(FRONT_END_PAGE))
    throw new Error(`this Chromium does not contain the DevTools page ${ORIGIN}${FRONT_END_PAGE}`);
  return files;
}

async function openInertPage(control: Control): Promise<Page> {
  const { targetId } = await control.send('Target.createTarget', { url: ORIGIN + INERT_FILE });
  const page = await pollUntil(PAGE_TIMEOUT_MS, 'the DevTools page to open', () =>
    control.pages.find(one => one.targetId === targetId),
  );
  await pollUntil(PAGE_TIMEOUT_MS, 'the DevTools page to load', async () => {
    const evaluation = await control.send('Runtime.evaluate', { expression: 'location.href' }, page.channel);
    return (
      textAt(isObject(evaluation.result) ? evaluation.result : undefined, 'value') === ORIGIN + INERT_FILE || undefined
    );
  });
  return page;
}

async function readFiles(control: Control, page: Page, paths: readonly string[]): Promise<Array<[string, Buffer]>> {
  const expression = `(${READ_FILES_SCRIPT})(${JSON.stringify(paths)})`;
  const params = { expression, awaitPromise: true, returnByValue: true };
  const response = await control.send('Runtime.evaluate', params, page.channel, BATCH_TIMEOUT_MS);
  const contents: Json | undefined = isObject(response.result) ? response.result.value : undefined;
  if (!Array.isArray(contents))
    throw new Error('the DevTools files could not be read: the script that reads them returned no list');
  return paths.flatMap((path, index) => {
    const content: unknown = contents[index];
    if (typeof content !== 'string' || content === '') return [];
    return [[path, Buffer.from(content.slice(1), 'base64')] as [string, Buffer]];
  });
}
