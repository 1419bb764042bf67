// Checks the index of decisions: it lists every file once, under its title, in order of number.
import { posix } from 'node:path';
import type { SourceFile, Violation } from './source-files.ts';

const INDEX_PATH = 'docs/decisions/README.md';
const DECISION_PATH = /^docs\/decisions\/\d{4}-[\w-]+\.md$/;

export function checkDecisions(files: readonly SourceFile[]): Violation[] {
  const index = files.find(({ path }) => path === INDEX_PATH)?.text ?? '';
  const indexLines = index.split('\n').filter(line => line.startsWith('- '));
  const lines = files.filter(({ path }) => DECISION_PATH.test(path)).map(lineFor);
  const expectedLines = lines.map(({ line }) => line);
  const missingLineViolations = lines
    .filter(({ line }) => !indexLines.includes(line))
    .map(({ path, line }) => ({
      path,
      what: 'the index of decisions does not list this file under its title',
      remedy: `write into ${INDEX_PATH}: ${line}`,
    }));
  const extraLineViolations = indexLines
    .filter((line, at) => !expectedLines.includes(line) || indexLines.indexOf(line) !== at)
    .map(line => violation(`no decision matches this line, or it is repeated: ${line}`, 'remove or correct the line.'));
  const isInOrder = indexLines.every((line, at) => at === 0 || (indexLines[at - 1] ?? '') <= line);
  return [
    ...missingLineViolations,
    ...extraLineViolations,
    ...(isInOrder ? [] : [violation('the index is not ordered by number', 'sort its lines.')]),
  ];
}

const violation = (what: string, remedy: string): Violation => ({ path: INDEX_PATH, what, remedy });

/** Returns the index line for a document: `- [0001: Title](0001-name.md)`. */
function lineFor({ path, text }: SourceFile): { path: string; line: string } {
  const title = /^# (.+)$/m.exec(text)?.[1] ?? '';
  return { path, line: `- [${title}](${posix.basename(path)})` };
}
