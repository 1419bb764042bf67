// The files of DevTools that a Chromium brings with it, read out of a page of that Chromium: nothing else knows under which
// names they stand in its resources. Beginning at the front end's own page, every file that one names is asked for.
import { isObject, type Json, textAt } from '../../kit/json.ts';
import { until } from '../../kit/wait.ts';
import type { Control, Page } from './control.ts';
import { findNames } from './front-end-names.ts';

export const FRONT_END_PAGE = 'devtools_app.html';
const ORIGIN = 'devtools://devtools/bundled/';
/** Built from the language at run time, so that no file names them. Others are not bundled. */
const UNNAMED = ['core/i18n/locales/en-US.json', 'core/i18n/locales/zh.json'];
/** A file that runs nothing, to ask from: the front end's page would start DevTools. */
const ASKED_FROM = 'application_tokens.css';
const AT_ONCE = 24;
const PAGE_MS = 10_000;
const BATCH_MS = 15_000;
/** Chromium 156 has some 700 of 12 MB. */
const FILES_MAX = 4_000;
const BYTES_MAX = 64 * 1024 ** 2;

const READ = `async paths => Promise.all(paths.map(async path => {
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
  const page = await pageToAskFrom(control);
  const files = new Map<string, Buffer>();
  const seen = new Set([FRONT_END_PAGE, ...UNNAMED]);
  const waiting = [...seen];
  let bytes = 0;
  while (waiting.length > 0) {
    const paths = waiting.splice(0, AT_ONCE);
    for (const [path, content] of await read(control, page, paths)) {
      files.set(path, content);
      bytes += content.length;
      if (files.size > FILES_MAX || bytes > BYTES_MAX) throw new Error('DevTools has more files than are taken');
      for (const name of findNames(path, content)) if (!seen.has(name)) waiting.push(...(seen.add(name) && [name]));
    }
  }
  if (!files.has(FRONT_END_PAGE)) throw new Error(`this Chromium has no ${ORIGIN}${FRONT_END_PAGE}`);
  return files;
}

async function pageToAskFrom(control: Control): Promise<Page> {
  const { targetId } = await control.send('Target.createTarget', { url: ORIGIN + ASKED_FROM });
  const page = await until(PAGE_MS, 'the page of DevTools', () => control.pages.find(one => one.targetId === targetId));
  await until(PAGE_MS, 'DevTools to be read from', async () => {
    const asked = await control.send('Runtime.evaluate', { expression: 'location.href' }, page.channel);
    return textAt(isObject(asked.result) ? asked.result : undefined, 'value') === ORIGIN + ASKED_FROM || undefined;
  });
  return page;
}

async function read(control: Control, page: Page, paths: readonly string[]): Promise<Array<[string, Buffer]>> {
  const expression = `(${READ})(${JSON.stringify(paths)})`;
  const question = { expression, awaitPromise: true, returnByValue: true };
  const answer = await control.send('Runtime.evaluate', question, page.channel, BATCH_MS);
  const contents: Json | undefined = isObject(answer.result) ? answer.result.value : undefined;
  if (!Array.isArray(contents)) throw new Error('DevTools could not be read');
  return paths.flatMap((path, index) => {
    const content: unknown = contents[index];
    if (typeof content !== 'string' || content === '') return [];
    return [[path, Buffer.from(content.slice(1), 'base64')] as [string, Buffer]];
  });
}
