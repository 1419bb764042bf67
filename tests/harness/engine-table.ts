// The tables of docs/engines.md, generated from the results of the probes on each engine.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES, type Engine } from '../../contract/sessions.ts';
import type { Observations } from './look.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/engines.md');
const BEGIN = '<!-- Written by `npm run gen:engines`. -->';
const END = '<!-- The end of what it writes. -->';
/** The maximum number of differences that are named in a line. Further differences are counted. */
const NAMED_MAX = 8;

/** The results of each engine, by feature. */
export type FeatureResults = ReadonlyMap<string, Readonly<Record<Engine, string>>>;

export function engineTables(features: FeatureResults, observed: Readonly<Record<Engine, Observations>>): string {
  const lines = Object.keys(observed.chromium).sort();
  const rows = lines.map(
    line => [line, inWords(line, differenceOf(observed.chromium[line], observed['headless-shell'][line]))] as const,
  );
  const same = rows.flatMap(([line, difference]) => (difference === '' ? [line] : []));
  return [
    BEGIN,
    `| What works | ${ENGINES.join(' | ')} |`,
    '| --- | --- | --- |',
    ...[...features].map(([what, seen]) => `| ${what} | ${ENGINES.map(engine => seen[engine]).join(' | ')} |`),
    '',
    '| What a page can notice | headless-shell beside chromium |',
    '| --- | --- |',
    ...rows.flatMap(([line, difference]) => (difference === '' ? [] : [`| ${line} | ${difference} |`])),
    `| ${same.join(', ')} | the same |`,
    END,
  ].join('\n');
}

/** The part of the document between the marks. */
export function tablesInDocument(): string {
  const text = readFileSync(DOCUMENT, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  return from < 0 || to < from ? '' : text.slice(from, to + END.length);
}

export function writeTables(tables: string): void {
  const text = readFileSync(DOCUMENT, 'utf8');
  writeFileSync(
    DOCUMENT,
    text.replace(tablesInDocument(), () => tables),
  );
}

/** Describes a difference of fonts in general words, because the list of fonts depends on the machine. */
const inWords = (line: string, difference: string): string =>
  line === 'fonts' && difference !== '' ? 'text in fonts that are not installed has another width' : difference;

function differenceOf(chromium: unknown, shell: unknown): string {
  const [chromiumLeaves, shellLeaves] = [new Set(leavesOf(chromium)), new Set(leavesOf(shell))];
  const removed = [...chromiumLeaves].filter(leaf => !shellLeaves.has(leaf));
  const added = [...shellLeaves].filter(leaf => !chromiumLeaves.has(leaf));
  if (removed.length + added.length === 0) return '';
  if (removed.length === 0) return `also ${listText(added)}`;
  if (added.length === 0) return `without ${listText(removed)}`;
  return `${listText(added)} instead of ${listText(removed)}`;
}

function listText(leaves: readonly string[]): string {
  const shown = leaves.slice(0, NAMED_MAX).map(leaf => `\`${leaf}\``);
  const more = leaves.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/**
 * Lists the values at all depths. A comma-separated list counts as several values. Versions are omitted, because each
 * upgrade changes them.
 */
function leavesOf(value: unknown, name = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(each => leavesOf(each, name));
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, each]) => leavesOf(each, key));
  const text = String(value)
    .replaceAll(/\d+\.\d+\.\d{2,}\.\d+/g, 'VERSION')
    .replaceAll(/\b1\d\d\b/g, 'MAJOR');
  const values = (text.length > LIST_CHARACTERS ? text.split(',') : [text]).filter(each => each !== '' || name !== '');
  return values.map(each => (name === '' ? each : `${name}: ${each}`).replaceAll('|', '\\|'));
}

const LIST_CHARACTERS = 500;
