// Finds unknown fields of a body that are probably misspelled or misplaced restrictions. Such fields are refused. If they
// were only reported as warnings, the caller would rely on a restriction that is not applied.
import { correctionFor } from '../../kit/nearest.ts';

/** Longer names are not compared, because they cannot be misspelled fields. */
const NAME_CHARACTERS_MAX = 64;

export interface RefusedField {
  readonly path: string;
  /**
   * The field that was probably meant. Absent if the unknown field is inside a protecting field and no field there has
   * a similar name.
   */
  readonly suggestion?: string;
}

/**
 * `protectingFields` contains the fields that restrict what is created, by path, each with other names that callers use
 * for the field. `knownNames` contains the paths of all fields of the body. Both contain paths without indexes, such as
 * `proxies.server`. An unknown field that resembles a parent of a protecting field is refused too, since the
 * restrictions in it would be lost.
 */
export function refusedFields(
  unknownPaths: readonly string[],
  protectingFields: Readonly<Record<string, readonly string[]>>,
  knownNames: readonly string[],
): RefusedField[] {
  const fields = Object.keys(protectingFields);
  const fieldsAndParents = [...new Set(fields.flatMap(pathAndParents))];
  return unknownPaths.flatMap((path): RefusedField[] => {
    const pathWithoutIndexes = path.replaceAll(/\[\d+\]/g, '');
    const name = nameOf(pathWithoutIndexes);
    const isInside = fields.some(field => pathWithoutIndexes.startsWith(`${field}.`));
    if (name.length > NAME_CHARACTERS_MAX) return isInside ? [{ path }] : [];
    const candidates = isInside
      ? knownNames.filter(field => parentOf(field) === parentOf(pathWithoutIndexes))
      : fieldsAndParents;
    const correctedName = correctionFor(name, candidates.map(nameOf));
    const suggestion = candidates.find(
      field => nameOf(field) === correctedName || protectingFields[field]?.includes(name),
    );
    if (suggestion === undefined) return isInside ? [{ path }] : [];
    return [{ path, suggestion }];
  });
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('.')));

const pathAndParents = (path: string): string[] => (path === '' ? [] : [path, ...pathAndParents(parentOf(path))]);
