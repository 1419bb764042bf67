// Finds declarations that the compiler does not report as unused: exported values that no other file names, not even a
// test, and functions in interfaces of the server that nothing calls, such as a metric that no part counts.
import { codeOnly, withoutComments } from './imports.ts';
import { isCode, isTest, lineOf, type SourceFile, type Violation } from './source-files.ts';

const EXPORTED_VALUE = /^export (?:async |abstract )?(?:const|let|function\*?|class) (\w+)/gm;
/** The contract and the SDK export names for their users. */
const PUBLIC_PATHS = /^(?:contract|sdk)\//;
const INTERFACE = /^(?:export )?interface [^{]*\{\n([\s\S]*?)^\}/gm;
const FUNCTION_MEMBER = /^ {2}(?:readonly )?(\w+)\??(?:\(|: \()/gm;
const PROPERTY_ACCESS = /\.(\w+)/g;
/** `name: parts.name` only hands a member on, so it is not a use. */
const HANDED_ON = /\b(\w+): ((?:[\w#]+\??\.)+)\1\b(?!\s*(?:\?\.)?[(<])/g;
/** A pattern that reads members of an object: what is assigned, a parameter, or the variable of a loop. */
const DESTRUCTURING = /\{([^{}]*)\}(?=\s*(?:=(?![>=])|:\s|\)\s*(?:=>|:)|,\s*\w+(?:,\s*\w+)*\)\s*=>|\s+of\b))/g;
const DESTRUCTURED_NAME = /(?:^|,)\s*(\w+)/g;
/** A member may be read by a name in a string: `Pick<Parts, 'clock'>`, `parts['clock']`. */
const QUOTED_NAME = /(['"`])(\w+)\1/g;

export function checkUnused(files: readonly SourceFile[]): Violation[] {
  const codeFiles = files.filter(({ path }) => isCode(path)).map(file => ({ ...file, code: codeOnly(file.text) }));
  return [...unusedExports(codeFiles), ...uncalledMembers(codeFiles)];
}

interface CodeFile extends SourceFile {
  /** The text without comments and strings. */
  readonly code: string;
}

function unusedExports(files: readonly CodeFile[]): Violation[] {
  const fileCounts = new Map<string, number>();
  for (const { code } of files)
    for (const name of new Set(code.match(/\w+/g))) fileCounts.set(name, (fileCounts.get(name) ?? 0) + 1);
  return files
    .filter(({ path }) => !PUBLIC_PATHS.test(path))
    .flatMap(({ path, code }) =>
      [...code.matchAll(EXPORTED_VALUE)]
        .filter(([, name = '']) => fileCounts.get(name) === 1)
        .map(({ index, 1: name }) => ({
          path,
          line: lineOf(code, index),
          what: `no other file names ${name}, which is exported`,
          remedy: 'use it where it is needed; or remove `export`, and the declaration if this file does not use it.',
        })),
    );
}

function uncalledMembers(files: readonly CodeFile[]): Violation[] {
  const readNames = new Set(files.filter(({ path }) => !isTest(path)).flatMap(namesReadIn));
  return files
    .filter(({ path }) => path.startsWith('server/') && !isTest(path))
    .flatMap(({ path, code }) =>
      functionMembersIn(code)
        .filter(({ name }) => !readNames.has(name))
        .map(({ name, index }) => ({
          path,
          line: lineOf(code, index),
          what: `nothing calls ${name}, which this interface declares`,
          remedy: 'call it in the part to which it is given, or remove it.',
        })),
    );
}

const functionMembersIn = (code: string): { readonly name: string; readonly index: number }[] =>
  [...code.matchAll(INTERFACE)].flatMap(({ index, 0: text }) =>
    [...text.matchAll(FUNCTION_MEMBER)].map(member => ({ name: member[1] ?? '', index: index + member.index })),
  );

function namesReadIn({ text, code }: CodeFile): string[] {
  const destructuredNames = [...code.matchAll(DESTRUCTURING)].flatMap(([, pattern = '']) =>
    [...pattern.matchAll(DESTRUCTURED_NAME)].map(([, name = '']) => name),
  );
  return [
    ...[...code.replace(HANDED_ON, '$2').matchAll(PROPERTY_ACCESS)].map(([, name = '']) => name),
    ...destructuredNames,
    ...[...withoutComments(text).matchAll(QUOTED_NAME)].map(([, , name = '']) => name),
  ];
}
