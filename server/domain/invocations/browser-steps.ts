// The steps of `browser.steps`: what the schema cannot check, their order to the driver, and their results.
import type { Static } from 'typebox';
import type { Issue } from '../../../contract/common.ts';
import { STEP_CONTENT_BYTES_MAX, STEP_FIELDS, type Step as StepSchema } from '../../../contract/managed-operations.ts';
import type { Step, Stepped, Wanted } from '../../engines/driver/command.ts';
import type { JsonObject } from '../../kit/json.ts';
import { invalidRequest } from '../faults.ts';
import { firstBytes } from './first-bytes.ts';

export type GivenStep = Static<typeof StepSchema>;

const QUALITY_DEFAULT = 80;

/** Throws `400 invalid_request` that names each field a step lacks or has no use for. */
export function assertSteps(steps: readonly GivenStep[]): void {
  const issues = steps.flatMap((step, index): Issue[] => {
    const path = `input.steps.${index}`;
    const { needs, can }: { needs: readonly string[]; can: readonly string[] } = STEP_FIELDS[step.do];
    const has = Object.keys(step).filter(name => name !== 'do');
    const missing = needs.filter(name => !has.includes(name));
    const unused = has.filter(name => !needs.includes(name) && !can.includes(name));
    return [
      ...missing.map(name => ({ path: `${path}.${name}`, message: `is required by ${step.do}` })),
      ...unused.map(name => ({ path: `${path}.${name}`, message: `has no effect in ${step.do}; omit it` })),
    ];
  });
  const pictures = steps.flatMap((step, index) => (step.do === 'screenshot' ? [index] : []));
  if (pictures.length > 1)
    issues.push({ path: `input.steps.${pictures[1]}`, message: 'is a second screenshot; a call takes one at most' });
  if (issues.length > 0) throw invalidRequest(issues);
}

/** Of steps that `assertSteps` accepted. */
export function stepOf(given: GivenStep): Step {
  const { selector = '', url = '', value = '', values = [], key = '', ms = 0 } = given;
  const place = given.selector === undefined ? {} : { selector: given.selector };
  switch (given.do) {
    case 'goto':
      return { do: 'goto', url, waitUntil: given.waitUntil ?? 'load' };
    case 'waitFor':
      return { do: 'waitFor', selector, state: given.state ?? 'visible' };
    case 'click':
      return { do: 'click', selector, button: given.button ?? 'left', double: given.double ?? false };
    case 'fill':
      return { do: 'fill', selector, value };
    case 'select':
      return { do: 'select', selector, values };
    case 'press':
      return { do: 'press', key, ...place };
    case 'hover':
      return { do: 'hover', selector };
    case 'scroll':
      return { do: 'scroll', x: given.x ?? 0, y: given.y ?? 0, ...place };
    case 'sleep':
      return { do: 'sleep', ms };
    case 'screenshot':
    case 'content':
    case 'extract':
      return { do: 'take', wanted: wantedOf(given, place) };
  }
}

function wantedOf(given: GivenStep, place: { readonly selector?: string }): Wanted {
  const { fullPage = false, format = 'png', quality = QUALITY_DEFAULT, as = 'text', fields = {} } = given;
  if (given.do === 'screenshot') return { kind: 'screenshot', fullPage, format, quality, ...place };
  if (given.do === 'content') return { kind: as, ...place };
  return { kind: 'fields', fields: wantedFields(fields) };
}

export const wantedFields = (fields: NonNullable<GivenStep['fields']>) =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, all: field.all ?? false }]));

/** The results as the output has them, and the picture. */
export function steppedOutput(given: readonly GivenStep[], { results, ...place }: Stepped) {
  const shown = given.map((step, index): JsonObject => {
    const { text = '', values, isCut } = results[index] ?? {};
    if (step.do === 'extract') return { do: step.do, fields: values ?? {} };
    if (step.do !== 'content') return { do: step.do };
    const content = firstBytes(text, step.maxBytes ?? STEP_CONTENT_BYTES_MAX);
    return { do: step.do, content, truncated: isCut === true || content.length < text.length };
  });
  const picture = results.find(({ bytes }) => bytes !== undefined);
  const { bytes, mimeType = 'image/png' } = picture ?? {};
  return { output: { ...place, results: shown }, ...(bytes ? { file: { bytes, mimeType } } : {}) };
}
