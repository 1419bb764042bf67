// Converts metadata into pairs of a dotted path and a string, which the search accepts.
import type { Json, JsonObject } from '../../../contract/common.ts';

export function metadataPairs(metadata: JsonObject | undefined): Array<readonly [string, string]> {
  return metadata ? Object.entries(metadata).flatMap(([name, value]) => pairsOf(name, value)) : [];
}

function pairsOf(path: string, value: Json): Array<readonly [string, string]> {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    return Object.entries(value as JsonObject).flatMap(([name, inner]) => pairsOf(`${path}.${name}`, inner));
  return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
}
