// Unknown fields of a body that were meant to restrict what is created. With a warning alone the caller would believe in a
// protection that is not there, so they are refused.
import { misspelt } from '../../kit/nearest.ts';

/** A longer name is no misspelling of a field, and comparing it would take time. */
const NAME_CHARACTERS_MAX = 64;

export interface RefusedField {
  readonly path: string;
  /** The protecting field that it may be. Absent: it stands inside one, and no field there has such a name. */
  readonly meant?: string;
}

/**
 * `protecting`: the protecting fields by path, each with other names that callers give it. `known`: the paths of all fields of
 * the body. Paths of both are without indexes: `proxies.server`.
 */
export function refusedFields(
  unknown: readonly string[],
  protecting: Readonly<Record<string, readonly string[]>>,
  known: readonly string[],
): RefusedField[] {
  const fields = Object.keys(protecting);
  return unknown.flatMap((path): RefusedField[] => {
    const plain = path.replaceAll(/\[\d+\]/g, '');
    const name = nameOf(plain);
    if (name.length > NAME_CHARACTERS_MAX) return [];
    const isInside = fields.some(field => plain.startsWith(`${field}.`));
    const candidates = isInside ? known.filter(field => parentOf(field) === parentOf(plain)) : fields;
    const right = misspelt(name, candidates.map(nameOf));
    const meant = candidates.find(field => nameOf(field) === right || protecting[field]?.includes(name));
    if (meant === undefined) return isInside ? [{ path }] : [];
    return [{ path, meant }];
  });
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('.')));
