// The tables of docs/engines.md, generated from the results of the probes on each engine.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES, type Engine } from '../../contract/sessions.ts';
import type { Observations } from './look.ts';

const DOCUMENT_PATH = join(import.meta.dirname, '../../docs/engines.md');
const BEGIN_MARK = '<!-- Written by `npm run gen:engines`. -->';
const END_MARK = '<!-- The end of what it writes. -->';
/** The maximum number of differences that are named in a line. Further differences are only counted. */
const DIFFERENCES_MAX = 8;

/** The results of each engine, by feature. */
export type FeatureResults = ReadonlyMap<string, Readonly<Record<Engine, string>>>;

export function renderTables(features: FeatureResults, observations: Readonly<Record<Engine, Observations>>): string {
  const lines = Object.keys(observations.chromium).sort();
  const rows = lines.map(
    line =>
      [
        line,
        describeDifference(line, differenceOf(observations.chromium[line], observations['headless-shell'][line])),
      ] as const,
  );
  const sameLines = rows.flatMap(([line, difference]) => (difference === '' ? [line] : []));
  return [
    BEGIN_MARK,
    `| What works | ${ENGINES.join(' | ')} |`,
    '| --- | --- | --- |',
    ...[...features].map(([what, seen]) => `| ${what} | ${ENGINES.map(engine => seen[engine]).join(' | ')} |`),
    '',
    '| What a page can notice | headless-shell beside chromium |',
    '| --- | --- |',
    ...rows.flatMap(([line, difference]) => (difference === '' ? [] : [`| ${line} | ${difference} |`])),
    `| ${sameLines.join(', ')} | the same |`,
    END_MARK,
  ].join('\n');
}

/** The part of the document between the marks. */
export function readTables(): string {
  const text = readFileSync(DOCUMENT_PATH, 'utf8');
  const [from, to] = [text.indexOf(BEGIN_MARK), text.indexOf(END_MARK)];
  return from < 0 || to < from ? '' : text.slice(from, to + END_MARK.length);
}

export function writeTables(tables: string): void {
  const text = readFileSync(DOCUMENT_PATH, 'utf8');
  writeFileSync(
    DOCUMENT_PATH,
    text.replace(readTables(), () => tables),
  );
}

/** Describes a font difference in general terms, because the list of fonts depends on the machine. */
const describeDifference = (line: string, difference: string): string =>
  line === 'fonts' && difference !== '' ? 'text in fonts that are not installed has another width' : difference;

function differenceOf(chromium: unknown, shell: unknown): string {
  const [chromiumLeaves, shellLeaves] = [new Set(leavesOf(chromium)), new Set(leavesOf(shell))];
  const removedLeaves = [...chromiumLeaves].filter(leaf => !shellLeaves.has(leaf));
  const addedLeaves = [...shellLeaves].filter(leaf => !chromiumLeaves.has(leaf));
  if (removedLeaves.length + addedLeaves.length === 0) return '';
  if (removedLeaves.length === 0) return `also ${listText(addedLeaves)}`;
  if (addedLeaves.length === 0) return `without ${listText(removedLeaves)}`;
  return `${listText(addedLeaves)} instead of ${listText(removedLeaves)}`;
}

function listText(leaves: readonly string[]): string {
  const leafTexts = leaves.slice(0, DIFFERENCES_MAX).map(leaf => `\`${leaf}\``);
  const more = leaves.length - leafTexts.length;
  return [...leafTexts, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/**
 * Lists the values at all depths. A long comma-separated list counts as several values. Version numbers are replaced by
 * placeholders, because each upgrade changes them.
 */
function leavesOf(value: unknown, name = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(each => leavesOf(each, name));
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, each]) => leavesOf(each, key));
  const text = String(value)
    .replaceAll(/\d+\.\d+\.\d{2,}\.\d+/g, 'VERSION')
    .replaceAll(/\b1\d\d\b/g, 'MAJOR');
  const values = (text.length > LIST_CHARACTERS_MIN ? text.split(',') : [text]).filter(
    each => each !== '' || name !== '',
  );
  return values.map(each => (name === '' ? each : `${name}: ${each}`).replaceAll('|', '\\|'));
}

const LIST_CHARACTERS_MIN = 500;
