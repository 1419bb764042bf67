// Validates the steps of a `browser` operation, and inserts the values of an input into them. Pure.
import type { Static } from 'typebox';
import type { Issue } from '../../../contract/common.ts';
import type { BindableStep, BrowserBinding } from '../../../contract/configured-operations.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { invalidRequest } from '../faults.ts';
import type { GivenStep } from '../invocations/browser-steps.ts';
import { stepIssues } from '../invocations/browser-steps.ts';
import { isPointer, referenceTokensOf, valueAt } from './json-pointer.ts';
import { expand, readTemplate } from './url-template.ts';

type StepBinding = Static<typeof BindableStep>;

const VALUE_CHARACTERS_MAX = 20_000;
const OPTION_CHARACTERS_MAX = 1000;
const OPTIONS_MAX = 100;

/**
 * Returns the issues found in the binding. `properties` contains the names of the members that the input may have, or
 * is undefined if the schema does not list them.
 */
export function browserBindingIssues(
  { url, steps }: BrowserBinding,
  properties: ReadonlySet<string> | undefined,
): Issue[] {
  const [firstStep] = steps;
  return [
    ...(url === undefined ? [] : templateIssues('binding.url', url, properties)),
    ...(url === undefined && firstStep?.do !== 'goto'
      ? [{ path: 'binding.url', message: 'is required unless the first step is goto' }]
      : []),
    ...stepIssues(steps, 'binding.steps'),
    ...steps.flatMap((step, index) => [
      ...(step.url === undefined ? [] : templateIssues(`binding.steps.${index}.url`, step.url, properties)),
      ...sourceIssues(`binding.steps.${index}.value`, step.value, properties),
      ...sourceIssues(`binding.steps.${index}.values`, step.values, properties),
    ]),
  ];
}

function templateIssues(path: string, url: string, properties: ReadonlySet<string> | undefined): Issue[] {
  const template = readTemplate(url);
  if (typeof template === 'string') return [{ path, message: template }];
  return [...template.pathVariables, ...template.queryVariables]
    .filter(name => properties && !properties.has(name))
    .map(name => ({ path, message: `has the variable ${name}, which inputSchema does not define` }));
}

function sourceIssues(
  path: string,
  source: StepBinding['value' | 'values'],
  properties: ReadonlySet<string> | undefined,
): Issue[] {
  const pointer = pointerIn(source);
  if (pointer === undefined) return [];
  if (!isPointer(pointer)) return [{ path: `${path}.from`, message: 'is not a JSON Pointer such as /orderId' }];
  const [memberName] = referenceTokensOf(pointer);
  return memberName !== undefined && properties && !properties.has(memberName)
    ? [{ path: `${path}.from`, message: `refers to the property ${memberName}, which inputSchema does not define` }]
    : [];
}

const pointerIn = (source: StepBinding['value' | 'values']): string | undefined =>
  typeof source === 'object' && 'from' in source ? source.from : undefined;

export interface BoundSteps {
  readonly url?: string;
  readonly steps: readonly GivenStep[];
}

/**
 * Returns the steps with the values of this input. Throws `400 invalid_request` for a value that is missing or that
 * cannot be written as text.
 */
export function bindSteps({ url, steps }: BrowserBinding, input: JsonObject): BoundSteps {
  return {
    ...(url === undefined ? {} : { url: expandedUrlOf(url, input) }),
    steps: steps.map(({ url: urlTemplate, value, values, ...step }) => ({
      ...step,
      ...(urlTemplate === undefined ? {} : { url: expandedUrlOf(urlTemplate, input) }),
      ...(value === undefined ? {} : { value: textOf(value, input) }),
      ...(values === undefined ? {} : { values: optionsOf(values, input) }),
    })),
  };
}

function expandedUrlOf(template: string, input: JsonObject): string {
  const expansion = expand(template, name => toPlainText(memberOf(input, name)), []);
  if ('url' in expansion) return expansion.url;
  const { variable, problem } = expansion;
  throw invalidRequest([{ path: variable === undefined ? 'input' : `input.${variable}`, message: problem }]);
}

const memberOf = (input: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(input, name) ? input[name] : undefined;

function textOf(value: NonNullable<StepBinding['value']>, input: JsonObject): string {
  if (typeof value === 'string') return value;
  const text = toPlainText(valueAt(input, value.from));
  if (text === undefined) throw invalidInput(value.from, 'must be a string, a number or a boolean');
  if (text.length > VALUE_CHARACTERS_MAX)
    throw invalidInput(value.from, `is longer than ${VALUE_CHARACTERS_MAX} characters`);
  return text;
}

function optionsOf(values: NonNullable<StepBinding['values']>, input: JsonObject): string[] {
  if (!isObject(values)) return [...values];
  const foundValue = valueAt(input, values.from);
  const options = (Array.isArray(foundValue) ? foundValue : [foundValue]).map(toPlainText);
  const texts = options.flatMap(option =>
    option !== undefined && option.length <= OPTION_CHARACTERS_MAX ? [option] : [],
  );
  if (texts.length !== options.length || texts.length > OPTIONS_MAX)
    throw invalidInput(
      values.from,
      `must be a string, or a list of at most ${OPTIONS_MAX} strings of at most ${OPTION_CHARACTERS_MAX} characters`,
    );
  return texts;
}

function toPlainText(value: Json | undefined): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? value : undefined;
}

const invalidInput = (pointer: string, message: string): Error =>
  invalidRequest([{ path: ['input', ...referenceTokensOf(pointer)].join('.'), message }]);
