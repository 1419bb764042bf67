// The steps of `browser.steps`: the checks that the schema cannot express, their conversion for the driver, and their
// results.
import type { Static } from 'typebox';
import type { Issue } from '../../../contract/common.ts';
import {
  STEP_ARTIFACTS_MAX,
  STEP_CONTENT_BYTES_MAX,
  STEP_FIELDS,
  STEP_HANDOFFS_MAX,
  type Step as StepSchema,
} from '../../../contract/managed-operations.ts';
import type { FileContent, Step, StepResult, StepsOutcome, WantedContent } from '../../engines/driver/command.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { JsonObject } from '../../kit/json.ts';
import { invalidRequest } from '../faults.ts';
import { credentialPartOf, fillIssues } from '../stored-credentials/typed-credentials.ts';
import { firstBytes } from './first-bytes.ts';
import type { NewFile } from './prepared.ts';

export type GivenStep = Static<typeof StepSchema>;

const QUALITY_DEFAULT = 80;

/** Throws `400 invalid_request` with all issues, such as a missing field or a field that has no effect in its step. */
export function assertSteps(steps: readonly GivenStep[]): void {
  const issues = stepIssues(steps, 'input.steps');
  if (issues.length > 0) throw invalidRequest(issues);
}

/** The part of a step that is checked here: the names of its fields, its files, and the source of its typed text. */
type CheckedStep = Pick<GivenStep, 'do' | 'files' | 'credential' | 'field' | 'totp'> & { readonly value?: unknown };

/** Returns the issues of the steps. `at` is the path of the list of steps. */
export function stepIssues(steps: readonly CheckedStep[], at: string): Issue[] {
  const issues = steps.flatMap((step, index): Issue[] => {
    const path = `${at}.${index}`;
    const { needs, can }: { needs: readonly string[]; can: readonly string[] } = STEP_FIELDS[step.do];
    const givenNames = Object.keys(step).filter(name => name !== 'do');
    const missingNames = needs.filter(name => !givenNames.includes(name));
    const unusedNames = givenNames.filter(name => !needs.includes(name) && !can.includes(name));
    return [
      ...missingNames.map(name => ({ path: `${path}.${name}`, message: `is required by ${step.do}` })),
      ...unusedNames.map(name => ({ path: `${path}.${name}`, message: `has no effect in ${step.do}; omit it` })),
      ...fillIssues(step, path),
    ];
  });
  issues.push(
    ...steps.flatMap(({ files = [] }, index) =>
      files.flatMap((file, number) => issuesOf(file, `${at}.${index}.files.${number}`)),
    ),
  );
  const artifactStepIndexes = steps.flatMap((step, index) =>
    step.do === 'screenshot' || step.do === 'pdf' ? [index] : [],
  );
  if (artifactStepIndexes.length > STEP_ARTIFACTS_MAX)
    issues.push({
      path: `${at}.${artifactStepIndexes[STEP_ARTIFACTS_MAX]}`,
      message: `exceeds the limit: a call can produce at most ${STEP_ARTIFACTS_MAX} files`,
    });
  const handoffPaths = steps.flatMap((step, index) => (step.do === 'handoff' ? [`${at}.${index}`] : []));
  const [extraHandoffPath] = handoffPaths.slice(STEP_HANDOFFS_MAX);
  if (extraHandoffPath !== undefined)
    issues.push({
      path: extraHandoffPath,
      message: `exceeds the limit: a call can request at most ${STEP_HANDOFFS_MAX} hand-offs`,
    });
  // Typed credentials must stay hidden from people, so no person may take control of the pages that contain them.
  const [firstHandoffPath] = handoffPaths;
  if (
    firstHandoffPath !== undefined &&
    steps.some(({ credential, totp }) => credential !== undefined || totp !== undefined)
  )
    issues.push({
      path: firstHandoffPath,
      message: 'is not allowed together with steps that type credentials; use two calls',
    });
  return issues;
}

type GivenFile = NonNullable<GivenStep['files']>[number];

function issuesOf({ text, base64 }: GivenFile, path: string): Issue[] {
  if ((text === undefined) !== (base64 === undefined)) return [];
  return [{ path, message: 'requires either text or base64' }];
}

const contentOf = ({ name, mimeType = 'application/octet-stream', text, base64 = '' }: GivenFile): FileContent => ({
  ...{ name, mimeType, bytes: new Uint8Array(text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text)) },
});

/** Converts a step that `assertSteps` has accepted. */
export function stepOf(givenStep: GivenStep): Step {
  const { selector = '', url = '', value = '', values = [], key = '', ms = 0 } = givenStep;
  const selectorField = givenStep.selector === undefined ? {} : { selector: givenStep.selector };
  switch (givenStep.do) {
    case 'goto':
      return { do: 'goto', url, waitUntil: givenStep.waitUntil ?? 'load' };
    case 'waitFor':
      return { do: 'waitFor', selector, state: givenStep.state ?? 'visible' };
    case 'download':
      return { do: 'click', selector, button: 'left', double: false };
    case 'click':
      return { do: 'click', selector, button: givenStep.button ?? 'left', double: givenStep.double ?? false };
    case 'fill':
      return credentialPartOf(givenStep) ? { do: 'type', selector } : { do: 'fill', selector, value };
    case 'select':
      return { do: 'select', selector, values };
    case 'press':
      return { do: 'press', key, ...selectorField };
    case 'hover':
      return { do: 'hover', selector };
    case 'scroll':
      return { do: 'scroll', x: givenStep.x ?? 0, y: givenStep.y ?? 0, ...selectorField };
    case 'upload':
      return { do: 'upload', selector, files: (givenStep.files ?? []).map(contentOf) };
    case 'sleep':
      return { do: 'sleep', ms };
    case 'handoff':
      throw new Error('the driver does not execute hand-offs');
    case 'pdf':
    case 'screenshot':
    case 'content':
    case 'extract':
      return { do: 'take', wanted: wantedContentOf(givenStep, selectorField) };
  }
}

function wantedContentOf(contentStep: GivenStep, selectorField: { readonly selector?: string }): WantedContent {
  const { fullPage = false, format = 'png', quality = QUALITY_DEFAULT, as = 'text', fields = {} } = contentStep;
  if (contentStep.do === 'screenshot') return { kind: 'screenshot', fullPage, format, quality, ...selectorField };
  if (contentStep.do === 'pdf') {
    const { paper = 'A4', landscape = false, background = true, pages } = contentStep;
    return { kind: 'pdf', paper, landscape, background, ...(pages === undefined ? {} : { pages }) };
  }
  if (contentStep.do === 'content') return { kind: as, ...selectorField };
  return { kind: 'fields', fields: wantedFields(fields) };
}

export const wantedFields = (fields: NonNullable<GivenStep['fields']>) =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, all: field.all ?? false }]));

/** The files of each `download` step, by the number of the step. */
export type StepDownloads = ReadonlyMap<number, readonly JsonObject[]>;

/** The hand-off of each `handoff` step, by the number of the step. */
export type StepHandoffs = ReadonlyMap<number, Pick<HandoffRow, 'id' | 'note'>>;

/** Steps that the driver performs together, and the hand-off that follows them, if any. */
export interface StepGroup {
  readonly steps: readonly GivenStep[];
  readonly handoff?: GivenStep;
}

/**
 * Divides the steps into parts. A part ends after a `download`, because the service then waits for the files, and
 * before a `handoff`. If the last step is a `handoff`, an empty part follows it, to report the address of the page
 * after the hand-off.
 */
export function stepGroupsOf(steps: readonly GivenStep[]): readonly StepGroup[] {
  const stepGroups: StepGroup[] = [];
  let currentSteps: GivenStep[] = [];
  for (const [index, step] of steps.entries()) {
    if (step.do !== 'handoff') currentSteps.push(step);
    const isLast = index === steps.length - 1;
    if (step.do !== 'handoff' && (step.do !== 'download' || isLast)) continue;
    stepGroups.push({ steps: currentSteps, ...(step.do === 'handoff' ? { handoff: step } : {}) });
    currentSteps = [];
  }
  return [...stepGroups, { steps: currentSteps }];
}

/** Converts the results to the output. Returns the output, and the files in the order of its `artifacts`. */
export function stepsOutput(
  givenSteps: readonly GivenStep[],
  { results, ...place }: StepsOutcome,
  {
    downloadsByStep,
    handoffsByStep,
  }: { readonly downloadsByStep: StepDownloads; readonly handoffsByStep: StepHandoffs },
) {
  const files: NewFile[] = [];
  const downloads: JsonObject[] = [];
  const stepResults = givenSteps.map((step, index): JsonObject => {
    const result = results[index];
    const { text = '', values, isTruncated } = result ?? {};
    if (step.do === 'handoff') return { do: step.do, ...handoffFields(handoffsByStep.get(index)) };
    if (step.do === 'download') {
      const firstIndex = downloads.length;
      downloads.push(...(downloadsByStep.get(index) ?? []));
      return { do: step.do, downloads: downloads.slice(firstIndex).map((_, number) => firstIndex + number) };
    }
    if (step.do === 'extract') return { do: step.do, fields: values ?? {} };
    if (result?.bytes) return { do: step.do, artifact: files.push(fileIn(result)) - 1, ...sizesOf(result) };
    if (step.do !== 'content') return { do: step.do };
    const content = firstBytes(text, step.maxBytes ?? STEP_CONTENT_BYTES_MAX);
    return { do: step.do, content, truncated: isTruncated === true || content.length < text.length };
  });
  return { output: { ...place, results: stepResults, ...(downloadsByStep.size > 0 ? { downloads } : {}) }, files };
}

const handoffFields = (row: Pick<HandoffRow, 'id' | 'note'> | undefined): JsonObject => ({
  ...(row ? { handoffId: row.id } : {}),
  ...(row?.note === undefined ? {} : { note: row.note }),
});

const fileIn = ({ bytes = new Uint8Array(), mimeType = 'application/octet-stream' }: StepResult): NewFile => ({
  ...{ bytes, mimeType },
});

const sizesOf = ({ width, height, pages }: StepResult) => ({
  ...(width === undefined ? {} : { width }),
  ...(height === undefined ? {} : { height }),
  ...(pages === undefined ? {} : { pages }),
});
