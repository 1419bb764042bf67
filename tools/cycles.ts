// Finds circular imports, of values or of types, because neither of the files can be understood without the other.
import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import { isCode, type SourceFile, type Violation } from './source-files.ts';

const REMEDY = 'move what both need into a third file, or pass it as a parameter.';

export function checkCycles(files: readonly SourceFile[]): Violation[] {
  const edges = new Map(files.filter(file => isCode(file.path)).map(file => [file.path, targetsOf(file)]));
  const violationByCycle = new Map<string, Violation>();
  const visited = new Set<string>();
  for (const start of edges.keys()) follow(start, [], edges, visited, violationByCycle);
  return [...violationByCycle.values()];
}

function targetsOf(file: SourceFile): string[] {
  return importsOf(file.text)
    .filter(found => found.specifier.startsWith('.'))
    .map(found => posix.normalize(posix.join(posix.dirname(file.path), found.specifier)));
}

function follow(
  path: string,
  trail: readonly string[],
  edges: ReadonlyMap<string, readonly string[]>,
  visited: Set<string>,
  violationByCycle: Map<string, Violation>,
): void {
  const cycleStart = trail.indexOf(path);
  if (cycleStart !== -1) {
    const cycle = trail.slice(cycleStart);
    violationByCycle.set([...cycle].sort().join(), {
      path,
      what: `circular import: ${[...cycle, path].join(' -> ')}`,
      remedy: REMEDY,
    });
    return;
  }
  if (visited.has(path)) return;
  for (const target of edges.get(path) ?? []) follow(target, [...trail, path], edges, visited, violationByCycle);
  visited.add(path);
}
