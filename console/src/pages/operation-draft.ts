// The strings of the form for an operation. Converts between them and the values of the API, and finds the field that
// an API error refers to.
import type { Issue } from '../../../contract/common.ts';
import type {
  BrowserBinding,
  ConfiguredOperation,
  ConfigureOperation,
  HttpBinding,
  OperationApproval,
} from '../../../contract/configured-operations.ts';
import type { OperationEffect } from '../../../contract/invocations.ts';
import { lineNumberOf, offsetOf, type PlacedProblem, parseJson, partsOf } from '../json/places.ts';

export type ConfigurableKind = 'http' | 'browser';

export interface OperationDraft {
  readonly kind: ConfigurableKind;
  readonly title: string;
  readonly description: string;
  readonly effect: OperationEffect;
  readonly approval: OperationApproval;
  readonly acknowledged: boolean;
  readonly method: HttpBinding['method'];
  readonly url: string;
  /** Empty: the call is sent without a credential. */
  readonly credentialId: string;
  readonly as: 'bearer' | 'basic' | 'header';
  readonly header: string;
  readonly bodyFrom: string;
  readonly idempotencyHeader: string;
  /** This field and the fields that follow, up to and including `settings`, contain JSON. */
  readonly steps: string;
  readonly inputSchema: string;
  readonly outputSchema: string;
  /** A list of inputs. */
  readonly examples: string;
  /** The members of the binding that have no field of their own. */
  readonly call: string;
  /** The members of the operation that have no field of their own. */
  readonly settings: string;
  /** The time limit of a call. */
  readonly seconds: string;
  /** The price of a call, in credits. */
  readonly price: string;
}

export type DraftField = keyof OperationDraft | 'id';

export const MICRO_CREDITS_PER_CREDIT = 1_000_000;
const SECOND_MS = 1_000;

export const EMPTY_DRAFT: OperationDraft = {
  ...{ kind: 'http', title: '', description: '', effect: 'read', approval: 'none', acknowledged: false },
  ...{ method: 'GET', url: '', credentialId: '', as: 'bearer', header: '', bodyFrom: '', idempotencyHeader: '' },
  ...{ steps: '', inputSchema: '', outputSchema: '', examples: '', call: '', settings: '', seconds: '20', price: '0' },
};

export function draftOf(operation: ConfiguredOperation): OperationDraft {
  const { title, description, kind, effect, approval, acknowledgeUnattended = false, binding } = operation;
  const { inputSchema, outputSchema, examples, display, retention, timeoutMs, price } = operation;
  return {
    ...EMPTY_DRAFT,
    ...{ kind: kind === 'browser' ? 'browser' : 'http', title, description, effect, approval },
    ...(binding ? bindingFields(binding) : {}),
    acknowledged: acknowledgeUnattended,
    inputSchema: formatJson(inputSchema),
    outputSchema: outputSchema ? formatJson(outputSchema) : '',
    examples: examples.length > 0 ? formatJson(examples.map(({ input }) => input)) : '',
    settings: formatRest({ ...(display ? { display } : {}), ...(retention ? { retention } : {}) }),
    seconds: String(timeoutMs / SECOND_MS),
    price: String(price.microCredits / MICRO_CREDITS_PER_CREDIT),
  };
}

function bindingFields(binding: HttpBinding | BrowserBinding): Partial<OperationDraft> {
  if ('steps' in binding) {
    const { url = '', steps, ...rest } = binding;
    return { url, steps: formatJson(steps), call: formatRest(rest) };
  }
  const { method, url, auth, body, idempotencyHeader = '', ...rest } = binding;
  return {
    ...{ method, url, idempotencyHeader, bodyFrom: body ? body.from || '/' : '', call: formatRest(rest) },
    ...(auth ? { credentialId: auth.credentialId, as: auth.as, header: auth.header ?? '' } : {}),
  };
}

export const formatJson = (value: unknown): string => JSON.stringify(value, undefined, 2);
const formatRest = (rest: object): string => (Object.keys(rest).length > 0 ? formatJson(rest) : '');

/** A problem in the form. `field` is absent if the problem does not belong to a single field. */
export interface Problem extends PlacedProblem {
  readonly field?: DraftField;
}

export class DraftError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ message }) => message).join(' '));
    this.problems = problems;
  }
}

/** @throws DraftError if a field that must contain JSON does not. The error names the position of each problem. */
export function requestOf(draft: OperationDraft): ConfigureOperation {
  const reader = new Reader(draft);
  const { kind, title, description, effect, approval, acknowledged, seconds, price } = draft;
  const inputSchema = reader.object('inputSchema') ?? {};
  const outputSchema = reader.object('outputSchema');
  const examples = reader.list('examples');
  const binding = kind === 'http' ? readHttpBinding(draft, reader) : readBrowserBinding(draft, reader);
  const settings = reader.object('settings');
  reader.assertNoProblems();
  return {
    ...settings,
    ...{ title, description, kind, effect, approval, inputSchema },
    ...(acknowledged ? { acknowledgeUnattended: true } : {}),
    ...(outputSchema ? { outputSchema } : {}),
    ...(examples ? { examples: examples.map(input => ({ input })) } : {}),
    binding: binding as HttpBinding | BrowserBinding, // The API validates the binding.
    timeoutMs: Math.round(Number(seconds) * SECOND_MS),
    price: { microCredits: Math.round(Number(price) * MICRO_CREDITS_PER_CREDIT) },
  } as ConfigureOperation; // The API validates the whole request.
}

function readHttpBinding(draft: OperationDraft, reader: Reader): object {
  const { method, url, credentialId, as, header, bodyFrom, idempotencyHeader } = draft;
  return {
    ...reader.object('call'),
    ...{ method, url: url.trim() },
    ...(credentialId === '' ? {} : { auth: { credentialId, as, ...(as === 'header' ? { header } : {}) } }),
    ...(bodyFrom === '' ? {} : { body: { from: bodyFrom } }),
    ...(idempotencyHeader === '' ? {} : { idempotencyHeader }),
  };
}

const readBrowserBinding = ({ url }: OperationDraft, reader: Reader): object => ({
  ...reader.object('call'),
  ...(url.trim() === '' ? {} : { url: url.trim() }),
  steps: reader.list('steps') ?? [],
});

type JsonField = 'steps' | 'inputSchema' | 'outputSchema' | 'examples' | 'call' | 'settings';

/** Parses the fields that contain JSON, and collects the errors. */
class Reader {
  readonly #draft: OperationDraft;
  readonly #problems: Problem[] = [];

  constructor(draft: OperationDraft) {
    this.#draft = draft;
  }

  object(field: JsonField): Record<string, unknown> | undefined {
    const value = this.#read(field);
    if (value === undefined || (typeof value === 'object' && value !== null && !Array.isArray(value)))
      return value as Record<string, unknown> | undefined; // Checked in the condition above.
    this.#problems.push({ field, message: 'Expected an object: { ... }.', offset: 0 });
    return undefined;
  }

  list(field: JsonField): unknown[] | undefined {
    const value = this.#read(field);
    if (value === undefined || Array.isArray(value)) return value;
    this.#problems.push({ field, message: 'Expected a list: [ ... ].', offset: 0 });
    return undefined;
  }

  assertNoProblems(): void {
    if (this.#problems.length > 0) throw new DraftError(this.#problems);
  }

  #read(field: JsonField): unknown {
    const text = this.#draft[field];
    if (text.trim() === '') return undefined;
    const json = parseJson(text);
    if ('places' in json) return json.value;
    const { message, offset } = json;
    this.#problems.push({
      field,
      message: `Line ${lineNumberOf(text, offset)} is not valid JSON: ${message}.`,
      offset,
    });
    return undefined;
  }
}

/** Assigns the issues that the API reported to the fields that they refer to. */
export const problemsOf = (issues: readonly Issue[], draft: OperationDraft): readonly Problem[] =>
  issues.map(({ path, message }) => {
    const { field, pathInField: rest } = fieldPathOf(partsOf(path), draft.kind);
    if (field === undefined) return { message: `${path} ${message}`.trim() };
    if (!isJsonField(field)) return { field, message };
    const json = parseJson(draft[field]);
    if (!('places' in json) || draft[field] === '') return { field, message: `${path} ${message}` };
    const offset = offsetOf(json, rest);
    return {
      field,
      message: `Line ${lineNumberOf(draft[field], offset)}: ${`${formatPath(rest)} ${message}`.trim()}`,
      offset,
    };
  });

/** Formats a path, for example as `steps[0].do`. */
const formatPath = (path: readonly string[]): string =>
  path.reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`), '');

const isJsonField = (field: DraftField): field is JsonField =>
  ['steps', 'inputSchema', 'outputSchema', 'examples', 'call', 'settings'].includes(field);

interface FieldPath {
  readonly field?: DraftField;
  /** The path within a field that contains JSON. */
  readonly pathInField: readonly string[];
}

function fieldPathOf(path: readonly string[], kind: ConfigurableKind): FieldPath {
  const [first = '', ...rest] = path;
  if (first === 'binding') return bindingPathOf(rest, kind);
  if (first === 'inputSchema' || first === 'outputSchema') return { field: first, pathInField: rest };
  if (first === 'examples')
    return { field: 'examples', pathInField: rest.filter((part, at) => at !== 1 || part !== 'input') };
  if (first === 'display' || first === 'retention') return { field: 'settings', pathInField: path };
  const field = TOP_LEVEL_FIELDS[first];
  return field ? { field, pathInField: [] } : { pathInField: [] };
}

const TOP_LEVEL_FIELDS: Readonly<Record<string, DraftField>> = {
  ...{ id: 'id', kind: 'kind', title: 'title', description: 'description', effect: 'effect', approval: 'approval' },
  ...{ acknowledgeUnattended: 'acknowledged', timeoutMs: 'seconds', price: 'price' },
};

function bindingPathOf([first = '', ...rest]: readonly string[], kind: ConfigurableKind): FieldPath {
  if (first === 'url') return { field: 'url', pathInField: [] };
  if (kind === 'browser')
    return first === 'steps' ? { field: 'steps', pathInField: rest } : { field: 'call', pathInField: [first, ...rest] };
  if (first === 'method' || first === 'idempotencyHeader') return { field: first, pathInField: [] };
  if (first === 'body') return { field: 'bodyFrom', pathInField: [] };
  if (first === 'auth') {
    const [part] = rest;
    return { field: part === 'as' || part === 'header' ? part : 'credentialId', pathInField: [] };
  }
  return first === '' ? { pathInField: [] } : { field: 'call', pathInField: [first, ...rest] };
}
