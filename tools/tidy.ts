// Small rules that no compiler checks: banned words with their replacements, opening comments, one title per document,
// links that have a target, no unused files.
import { posix } from 'node:path';
import { codeOnly, withoutComments } from './imports.ts';
import { isCode, isDocument, isTest, lineOf, type SourceFile, type Violation } from './source-files.ts';

interface Ban {
  readonly pattern: RegExp;
  readonly what: string;
  readonly remedy: string;
  /** The files to which the ban applies. */
  readonly where: (path: string) => boolean;
  /** `code`: ignores strings and comments. `strings`: ignores comments. `text`: includes everything. */
  readonly look: 'code' | 'strings' | 'text';
}

const isServerCode = (path: string): boolean => path.startsWith('server/') && !isTest(path);
const isBannedWordsTable = (path: string): boolean => /^tools\/tidy(\.test)?\.ts$/.test(path);
const isCheckedCode = (path: string): boolean => isCode(path) && !isBannedWordsTable(path);
/**
 * The engines that may start processes. In the vault, only the file that runs the operator's command for the master key
 * may do so.
 */
const MAY_START_PROCESSES = /^server\/engines\/(?:(?:slots|recorder|store)\/|vault\/master-key-source\.ts$)/;
/**
 * The files that may compute what they import: the worker thread imports the module of the job that it is given, and
 * tests import commands from a bundle.
 */
const COMPUTES_IMPORTS = /^(?:server\/kit\/worker-thread|tests\/harness\/bundle)\.ts$/;

const BANS: readonly Ban[] = [
  {
    pattern:
      /\bprocess\??\.env\b|=\s*process\s*[;,]|\bprocess\s*(?:\?\.\s*)?\[|\.{3}process\b|\bglobalThis\??\.process\b/g,
    what: 'process.env',
    remedy:
      'only server/config.ts reads the environment, which cli/berth.ts passes to it; take the value you need as a parameter.',
    where: path => isServerCode(path) || path.startsWith('contract/'),
    look: 'code',
  },
  {
    pattern: /\bfrom\s*(['"])(?:node:)?process\1/g,
    what: 'the module process',
    remedy: 'what may be used of `process` is global; its environment is read by server/config.ts.',
    where: path => isServerCode(path) || path.startsWith('contract/'),
    look: 'strings',
  },
  {
    pattern: /(?<![\w$.])import\s*\(\s*(?!['"\s])/g,
    what: 'an import of a computed path',
    remedy: 'name the file in quotes, so that the rules about imports can see it.',
    where: path => isCheckedCode(path) && !COMPUTES_IMPORTS.test(path),
    look: 'code',
  },
  {
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bprocess\.hrtime\b/g,
    what: 'reading the time',
    remedy: 'take a Clock (server/kit/clock.ts), so that a test can move it.',
    where: path => isServerCode(path) && path !== 'server/kit/clock.ts',
    look: 'code',
  },
  {
    pattern: /(['"])(?:node:)?child_process\1/g,
    what: 'child_process',
    remedy:
      'only engines/slots, engines/recorder and engines/store, and the command for the master key, may start processes.',
    where: path => isServerCode(path) && !MAY_START_PROCESSES.test(path),
    look: 'strings',
  },
  {
    pattern: /:\s*any\b|\bas any\b|<any>|\bany\[\]/g,
    what: 'the type any',
    remedy: 'use `unknown` and a validator, or name the type.',
    where: isCheckedCode,
    look: 'code',
  },
  {
    pattern: /[\w)\]]!(?:\.|\[|\(|;|,|\))/g,
    what: 'a non-null assertion',
    remedy: 'handle the absence: throw an error with a message, or return early.',
    where: isCheckedCode,
    look: 'code',
  },
  {
    pattern: /@ts-(?:ignore|expect-error|nocheck)|biome-ignore|eslint-disable/g,
    what: 'a silenced checker',
    remedy: 'change the code so that the checker accepts it; if the rule is wrong, change the rule for all files.',
    where: isCheckedCode,
    look: 'text',
  },
  {
    pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/g,
    what: 'a promise for later',
    remedy: 'do it now, or write an issue and remove the note.',
    where: path => (isCode(path) || isDocument(path)) && !isBannedWordsTable(path),
    look: 'text',
  },
  {
    pattern:
      /\b(?:test|it|describe|suite)\.(?:only|skip|todo)\b|[{,]\s*(?:only|skip|todo)\s*:|\b(?:t|context)\.(?:skip|todo)\(/g,
    what: 'a test that does not run, or keeps others from running',
    remedy: 'make it pass or remove it; a suite whose requirements are missing should fail and name them.',
    where: path => isTest(path) && !isBannedWordsTable(path),
    look: 'code',
  },
  {
    pattern: /\bconsole\.(?:log|error|warn|info|debug)\b/g,
    what: 'console',
    remedy: 'take a Log (server/kit/log.ts); what the operator sees at start is written by main.ts.',
    where: path => isServerCode(path) && path !== 'server/main.ts',
    look: 'code',
  },
  {
    pattern: /(?<![\w.~-])\/(?:work|home\/\w+)\/|(?<![\w.~/-])\/root\/[\w.]/g,
    what: "a path of a developer's machine",
    remedy: 'write it relative to the repository, or take it from os.tmpdir().',
    where: path => !isBannedWordsTable(path) && !path.startsWith('tests/attacks/'),
    look: 'text',
  },
];

/** Words that were replaced by plain ones and must not be used again. ARCHITECTURE.md has the words to use. */
const BANNED_EVERYWHERE =
  /so manieth|Left out: |as somebody wished|told as seldom|notNearerThanWe|keptAfterwards|demandThatTheyServe|none that a proxy|Its time was over/g;
const BANNED_IN_TEXTS =
  /bare array|[Oo]f no (?:use|meaning)\b|st(?:and|ands|ood) in line|found no place|(?:have|has|had) its place|wins over|passed over|goes on behind|nothing of its own/g;
/**
 * Names that must not be used again. Types of parameters and results are named Options, Request, Params or Result. A
 * part of a recording is a segment. Creates wait in a queue.
 */
const BANNED_IN_CODE =
  /\b\w*(?:Wish|Manner|Machinery)\b|\bWaitingLine\b|\bWholeSlice\b|\bSliceWriter\b|#tireOfPulses\b|\bproxy_is_none\b/g;

const PLAIN_TEXTS = /^(?:contract|console)\//;
const PLAIN_REMEDY = 'use plain English, with the words that ARCHITECTURE.md defines.';

const HARD_WORD_BANS: readonly Ban[] = [
  { pattern: BANNED_EVERYWHERE, where: (path: string) => isCheckedCode(path) || isDocument(path) },
  { pattern: BANNED_IN_TEXTS, where: (path: string) => isCheckedCode(path) && PLAIN_TEXTS.test(path) },
  { pattern: BANNED_IN_CODE, where: isCheckedCode },
].map(ban => ({ ...ban, what: 'words that are hard to understand', remedy: PLAIN_REMEDY, look: 'text' as const }));

export function checkTidy(files: readonly SourceFile[]): Violation[] {
  return [
    ...files.flatMap(checkWords),
    ...files.flatMap(checkOpening),
    ...files.flatMap(checkTitle),
    ...checkLinks(files),
    ...checkUnusedFiles(files),
  ];
}

function checkWords(file: SourceFile): Violation[] {
  return [...BANS, ...HARD_WORD_BANS]
    .filter(ban => ban.where(file.path))
    .flatMap(ban => {
      const searchedText =
        ban.look === 'text' ? file.text : ban.look === 'code' ? codeOnly(file.text) : withoutComments(file.text);
      return [...searchedText.matchAll(ban.pattern)].map(match => ({
        path: file.path,
        line: lineOf(file.text, match.index),
        what: `${ban.what}: ${file.text.slice(match.index, match.index + match[0].length).trim()}`,
        remedy: ban.remedy,
      }));
    });
}

const NEEDS_OPENING = /^(?:contract|server|sdk|cli|console|tools|bench|tests)\//;

function checkOpening(file: SourceFile): Violation[] {
  if (!isCode(file.path) || file.path.endsWith('.test.ts') || !NEEDS_OPENING.test(file.path)) return [];
  const firstLines = file.text.replace(/^#!.*\n/, '').trimStart();
  if (/^(?:\/\/\s*\S|\/\*)/.test(firstLines)) return [];
  return [
    {
      path: file.path,
      line: 1,
      what: 'no opening comment',
      remedy: 'begin with one to four lines that say what this file owns and what it does not.',
    },
  ];
}

/** Returns the document with its code blocks replaced by spaces, so that line numbers stay the same. */
function maskCodeBlocks(text: string): string {
  return text.replace(/^( *)(```+)[^\n]*\n[\s\S]*?^\1\2`*[ \t]*$/gm, block => block.replace(/[^\n]/g, ' '));
}

function checkTitle(file: SourceFile): Violation[] {
  if (!isDocument(file.path)) return [];
  const titles = [...maskCodeBlocks(file.text).matchAll(/^# .+$/gm)];
  if (titles.length === 1) return [];
  return [
    {
      path: file.path,
      line: titles[1] ? lineOf(file.text, titles[1].index) : 1,
      what: titles.length === 0 ? 'a document without a title' : 'a document with two titles',
      remedy: 'use one `# Title` per document; other headings are `##` or deeper.',
    },
  ];
}

function checkLinks(files: readonly SourceFile[]): Violation[] {
  const existingPaths = new Set(files.flatMap(({ path }) => [path, ...foldersOf(path)]));
  return files
    .filter(({ path }) => isDocument(path))
    .flatMap(file =>
      linksOf(file)
        .filter(({ path }) => !existingPaths.has(path) && !UNCHECKED_FILES.test(path))
        .map(({ target, line }) => ({
          path: file.path,
          line,
          what: `a link to nothing: ${target}`,
          remedy: 'correct the path, or remove the link.',
        })),
    );
}

/** The links of a document to files of the repository. `path` is relative to the root. */
function linksOf({ path, text }: SourceFile): Array<{ path: string; target: string; line: number }> {
  return [...maskCodeBlocks(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(match => {
    const target = (match[1] ?? '').replace(/#.*$/, '');
    if (target === '' || /^[a-z]+:/.test(target) || target.startsWith('/')) return [];
    const linkedPath = posix.join(posix.dirname(path), target).replace(/\/$/, '');
    return [{ path: linkedPath, target, line: lineOf(text, match.index) }];
  });
}

const foldersOf = (path: string): string[] => {
  const folder = posix.dirname(path);
  return folder === '.' ? [] : [folder, ...foldersOf(folder)];
};

/** Files that documents link to, but that the checks do not read. */
const UNCHECKED_FILES = /^(?:LICENSE|contract\/generated\/[\w.-]+|docs\/assets\/console\.png)$/;

function checkUnusedFiles(files: readonly SourceFile[]): Violation[] {
  const projectFiles = files.filter(
    file => /^(?:contract|server|sdk|cli|console|tools|bench)\//.test(file.path) && isCode(file.path),
  );
  const paths = new Set(projectFiles.map(file => file.path));
  const usedPaths = new Set(
    files.flatMap(file => (isTest(file.path) && !file.path.startsWith('tests/') ? [] : pathsMentionedIn(file, paths))),
  );
  return (
    projectFiles
      // No file imports declaration files: the compiler finds them by itself.
      .filter(file => !isTest(file.path) && !file.path.endsWith('.d.ts') && !usedPaths.has(file.path))
      .map(file => ({
        path: file.path,
        what: 'nobody imports or starts this file',
        remedy: 'delete it or use it; an import by its own unit test does not count.',
      }))
  );
}

const FILE_MENTION = /[\w.@/-]+\.(?:tsx?|[mc]js)\b/g;

/**
 * The paths that this file imports or mentions in a string or a script, for example a helper that it starts as a
 * program, or a command in package.json.
 */
function pathsMentionedIn(file: SourceFile, paths: ReadonlySet<string>): string[] {
  if (isDocument(file.path)) return [];
  const folder = posix.dirname(file.path);
  const text = isCode(file.path) ? withoutComments(file.text) : file.text;
  return [...text.matchAll(FILE_MENTION)]
    .flatMap(([name]) => [name.replace(/^[./]+/, ''), posix.join(folder, name)])
    .filter(path => path !== file.path && paths.has(path));
}
