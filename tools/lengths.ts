// Finds long wiring functions: a function that connects parts of the server may have at most 60 lines.
import { codeOnly } from './imports.ts';
import { isTest, type SourceFile, type Violation } from './source-files.ts';

const LINES_MAX = 60;
const WIRING_FILES_PATTERN = /^server\/(?:wiring\/[\w.-]+|parts|local|leftovers|examine|metrics)\.ts$/;
/**
 * Matches a line that begins a top-level declaration or comment. The code is formatted, so such a line has no
 * indentation.
 */
const TOP_LEVEL_LINE = /^[a-z/]/;
const FUNCTION = /^(?:export )?(?:(?:async )?function\*? (\w+)|const (\w+) =)/;

export function checkLengths(files: readonly SourceFile[]): Violation[] {
  return files.filter(({ path }) => WIRING_FILES_PATTERN.test(path) && !isTest(path)).flatMap(longFunctionsIn);
}

function longFunctionsIn({ path, text }: SourceFile): Violation[] {
  const lines = codeOnly(text).trimEnd().split('\n');
  const starts = lines.flatMap((line, at) => (TOP_LEVEL_LINE.test(line) ? [at] : []));
  return starts.flatMap((start, index) => {
    const [, functionName, constantName] = FUNCTION.exec(lines[start] ?? '') ?? [];
    const name = functionName ?? constantName;
    const length = lines
      .slice(start, starts[index + 1])
      .join('\n')
      .trimEnd()
      .split('\n').length;
    if (name === undefined || length <= LINES_MAX) return [];
    const what = `${name} has ${length} lines, and a wiring function may have ${LINES_MAX}`;
    const remedy = 'move each distinct step into its own function, or into a file of server/wiring.';
    return [{ path, line: start + 1, what, remedy }];
  });
}
