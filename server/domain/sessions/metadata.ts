// Validates the user metadata of a create or update. Pure.

import type { Issue } from '../../../contract/common.ts';
import { USER_METADATA_CHARACTERS_MAX } from '../../../contract/sessions.ts';
import type { Json, JsonObject } from '../../kit/json.ts';
import { invalidRequest } from '../faults.ts';

/** Returns the metadata, or throws `invalid_request`. */
export function requireValidMetadata(metadata: JsonObject): JsonObject {
  const issues = [...listIssues(metadata, 'userMetadata')];
  const text = JSON.stringify(metadata);
  const { length } = text;
  // JSON.stringify writes lone surrogates as \ud8xx; PostgreSQL can store neither these nor NUL.
  if (/(?<!\\)(\\\\)*\\u(0000|d[89a-f])/.test(text))
    issues.push({
      path: 'userMetadata',
      message: 'contains a NUL character or a lone surrogate; expected well-formed text',
    });
  if (length > USER_METADATA_CHARACTERS_MAX)
    issues.push({
      path: 'userMetadata',
      message: `has ${length} characters as JSON; expected at most ${USER_METADATA_CHARACTERS_MAX}`,
    });
  if (issues.length > 0) throw invalidRequest(issues);
  return metadata;
}

function* listIssues(value: Json, path: string): Generator<Issue> {
  if (Array.isArray(value)) yield { path, message: 'is a list; expected a string, a number, a boolean or an object' };
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) yield* listIssues(inner, `${path}.${name}`);
}
