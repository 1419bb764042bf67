// Renders an input for the person who approves the Action: the sentence and the fields of the operation's `display`, or
// every member of the input. The result is plain text without characters that could change how adjacent text is
// displayed. Pure.
import type { ConfigureOperation } from '../../../contract/configured-operations.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { valueAt } from '../configured-operations/json-pointer.ts';

const VALUE_CHARACTERS_MAX = 200;
const FIELDS_MAX = 50;
/**
 * Control characters, characters that reorder or hide text, private-use and unassigned characters, and line separators.
 */
const UNSAFE_CHARACTERS_PATTERN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu;
const PLACEHOLDER_PATTERN = /\{\{input((?:\.[A-Za-z0-9_-]{1,64}){1,8})\}\}/g;

export interface Rendering {
  readonly summary: string;
  readonly fields: ReadonlyArray<{ readonly label: string; readonly value: string }>;
}

export interface RenderableOperation {
  readonly title: string;
  readonly display?: ConfigureOperation['display'];
}

export function render({ title, display }: RenderableOperation, input: JsonObject): Rendering {
  if (!display) return { summary: title, fields: allFields(input) };
  const summary = display.summary.replace(PLACEHOLDER_PATTERN, (_, path: string) =>
    valueText(memberAt(input, path.slice(1).split('.'))),
  );
  const fields = display.fields?.map(({ label, value }) => ({ label, value: valueText(valueAt(input, value)) }));
  return { summary, fields: fields ?? allFields(input) };
}

function allFields(input: JsonObject): Rendering['fields'] {
  const members = Object.entries(input);
  const fields = members
    .slice(0, FIELDS_MAX)
    .map(([name, value]) => ({ label: truncate(escapeUnsafe(name)), value: valueText(value) }));
  const omittedCount = members.length - fields.length;
  return omittedCount > 0
    ? [...fields, { label: 'And', value: `${omittedCount} more fields, in the full content` }]
    : fields;
}

function memberAt(value: Json | undefined, path: readonly string[]): Json | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  return isObject(value) && Object.hasOwn(value, name) ? memberAt(value[name], rest) : undefined;
}

/**
 * Renders a value as one line. Invisible characters in the value are shown as escape sequences, because they are part
 * of the content that is approved.
 */
function valueText(value: Json | undefined): string {
  if (value === undefined) return '(none)';
  return truncate(escapeUnsafe(typeof value === 'string' ? value : JSON.stringify(value)));
}

const escapeUnsafe = (text: string): string =>
  text.replace(UNSAFE_CHARACTERS_PATTERN, character => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);

function truncate(text: string): string {
  const characters = [...text];
  if (characters.length <= VALUE_CHARACTERS_MAX) return text;
  return `${characters.slice(0, VALUE_CHARACTERS_MAX).join('')}… (${characters.length} characters)`;
}

/**
 * Returns an agent's reason as one paragraph, without control characters and without characters that hide or reorder
 * text.
 */
export const plainReason = (text: string): string =>
  text.replace(/\s+/gu, ' ').replace(UNSAFE_CHARACTERS_PATTERN, '').trim();
