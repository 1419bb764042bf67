// Finds circular imports, of values or of types: neither file can be understood without the other.
import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import { type Complaint, isCode, type SourceFile } from './source-files.ts';

const REMEDY = 'move what both need into a third file, or pass it as a parameter.';

export function checkCycles(files: readonly SourceFile[]): Complaint[] {
  const edges = new Map(files.filter(file => isCode(file.path)).map(file => [file.path, targetsOf(file)]));
  const complaintByCycle = new Map<string, Complaint>();
  const visited = new Set<string>();
  for (const start of edges.keys()) follow(start, [], edges, visited, complaintByCycle);
  return [...complaintByCycle.values()];
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
  complaintByCycle: Map<string, Complaint>,
): void {
  const cycleStart = trail.indexOf(path);
  if (cycleStart !== -1) {
    const cycle = trail.slice(cycleStart);
    complaintByCycle.set([...cycle].sort().join(), {
      path,
      what: `circular import: ${[...cycle, path].join(' -> ')}`,
      remedy: REMEDY,
    });
    return;
  }
  if (visited.has(path)) return;
  for (const target of edges.get(path) ?? []) follow(target, [...trail, path], edges, visited, complaintByCycle);
  visited.add(path);
}
