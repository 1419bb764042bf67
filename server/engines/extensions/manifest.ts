// Checks some members of manifest.json before Chromium loads the extension. Chromium itself checks all members.

import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { refusal } from './refusal.ts';

const MANIFEST_VERSION = 3;
const NAME_CHARACTERS_MAX = 1000;
const VERSION_PATTERN = /^(?:0|[1-9]\d{0,4})(?:\.(?:0|[1-9]\d{0,4})){0,3}$/;

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  readonly hasServiceWorker: boolean;
  /** All members of the manifest, unchanged, so that it can be written again. */
  readonly members: Readonly<Record<string, unknown>>;
}

export function readManifest(bytes: Buffer): Manifest {
  const members = parseMembers(bytes.toString('utf8').replace(/^\uFEFF/, ''));
  assertVersion(members.manifest_version);
  for (const [path, expected, isValid] of FIELD_CHECKS)
    if (!isValid(valueAt(members, path)))
      throw refusal('manifest_field', `${path} in manifest.json is not ${expected}`, 'Correct the manifest.');
  return {
    name: String(members.name),
    version: String(members.version),
    manifestVersion: MANIFEST_VERSION,
    hasServiceWorker: valueAt(members, 'background.service_worker') !== undefined,
    members,
  };
}

function parseMembers(text: string): Readonly<Record<string, unknown>> {
  const members = parseJson(text) ?? parseJson(withoutComments(text));
  if (isObject(members)) return members;
  throw refusal('manifest_not_json', 'manifest.json is not a JSON object', 'Correct the manifest.');
}

/**
 * Removes comments, which Chromium allows in a manifest. Text inside a string is kept, even if it looks like a comment.
 * An unclosed comment extends to the end.
 */
const withoutComments = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, found =>
    found.startsWith('"') ? found : ' ',
  );

function assertVersion(version: unknown): void {
  if (version === MANIFEST_VERSION) return;
  throw refusal(
    'manifest_version',
    `manifest_version is ${JSON.stringify(version) ?? 'missing'}`,
    `Chromium supports only version ${MANIFEST_VERSION}. Port the extension to this version.`,
  );
}

type Check = (value: unknown) => boolean;

const isText: Check = value => typeof value === 'string' && value.trim() !== '' && value.length <= NAME_CHARACTERS_MAX;
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check);

const FIELD_CHECKS: ReadonlyArray<readonly [path: string, expected: string, check: Check]> = [
  ['name', `a string of 1 to ${NAME_CHARACTERS_MAX} characters`, isText],
  ['version', 'one to four numbers separated by dots', isVersion],
  ['background', 'an object', optional(isObject)],
  ['background.service_worker', 'a string', optional(isText)],
  ['content_scripts', 'a list of objects', optional(listOf(isObject))],
  ['permissions', 'a list of strings', optional(listOf(value => typeof value === 'string'))],
  ['host_permissions', 'a list of strings', optional(listOf(isText))],
  ['action', 'an object', optional(isObject)],
  ['icons', 'an object', optional(isObject)],
  ['default_locale', 'a string', optional(isText)],
  ['key', 'a string', optional(isText)],
];

function isVersion(value: unknown): boolean {
  if (typeof value !== 'string' || !VERSION_PATTERN.test(value)) return false;
  const numbers = value.split('.').map(Number);
  return numbers.every(number => number <= 65_535) && numbers.some(number => number > 0);
}

const valueAt = (members: Readonly<Record<string, unknown>>, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), members);
