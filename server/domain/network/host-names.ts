// Normalizes host names for comparison: lower case, punycode, no trailing dot.
import type { Issue } from '../../../contract/common.ts';
import { invalidRequest } from '../faults.ts';

/** Letters of any script, digits, marks, dots and dashes. Underscores are allowed because some names contain them. */
const HOST_PATTERN = /^[\p{L}\p{N}\p{M}._-]+$/u;
const NAME_CHARACTERS_MAX = 253;

/**
 * Normalizes a host name. Removes a leading `*.`, which is redundant. Undefined if the text has a scheme, a path, a
 * port or any other wildcard.
 */
export function normalizeHostName(entry: string): string | undefined {
  const text = entry.replace(/^\*\./, '').replace(/\.$/, '');
  const url = HOST_PATTERN.test(text) ? URL.parse(`http://${text}/`) : undefined;
  const name = url?.hostname.replace(/\.$/, '');
  if (!name || name.length > NAME_CHARACTERS_MAX || name.split('.').includes('')) return undefined;
  return name;
}

/** Normalizes the list, or throws a fault that names every invalid entry. */
export function normalizeHostNames(entries: readonly string[], path: string): readonly string[] {
  const names = entries.map(normalizeHostName);
  const issues: Issue[] = entries.flatMap((entry, index) =>
    names[index] === undefined
      ? [
          {
            path: `${path}.${index}`,
            message: `is ${JSON.stringify(entry)}; expected a host name such as example.com, which includes its subdomains, without scheme, port, path or wildcard`,
          },
        ]
      : [],
  );
  if (issues.length > 0) throw invalidRequest(issues);
  return [...new Set(names.filter(name => name !== undefined))];
}
