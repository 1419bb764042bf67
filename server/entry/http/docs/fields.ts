// Schemas as lists of fields, and as examples.
import type { TSchema } from 'typebox';
import { expectation } from '../schema-walk.ts';
import { escapeText, prose } from './html.ts';

interface Shape {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly items?: TSchema;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
}

const shapeOf = (schema: TSchema): Shape => schema as Shape; // A schema is JSON; these are the parts read here.

/** How many nested fields are shown without being asked for. */
const OPEN_MAX = 4;

/** The fields of an object, nested ones folded. `allRequired` is for paths and headers. */
export function fieldList(schema: TSchema, allRequired = false, nameOf = (name: string): string => name): string {
  const { properties = {}, required = [] } = shapeOf(schema);
  const rows = Object.entries(properties).map(([name, inner]) =>
    fieldRow(nameOf(name), inner, allRequired || required.includes(name)),
  );
  return `<dl class="fields">${rows.join('')}</dl>`;
}

function fieldRow(name: string, schema: TSchema, isRequired: boolean): string {
  const { description, default: fallback } = shapeOf(schema);
  const marks = [
    `<span class="type">${escapeText(typeWords(schema))}</span>`,
    isRequired ? '<span class="required">required</span>' : '',
    fallback === undefined
      ? ''
      : `<span class="default">default <code>${escapeText(JSON.stringify(fallback))}</code></span>`,
  ];
  return `<div class="field"><dt><code class="name">${escapeText(name)}</code>${marks.join('')}</dt><dd>${
    description ? `<p>${prose(description)}</p>` : ''
  }${nested(schema)}</dd></div>`;
}

function nested(schema: TSchema): string {
  return objectsIn(schema)
    .map(inner => {
      const names = Object.keys(shapeOf(inner).properties ?? {});
      const open = names.length <= OPEN_MAX ? ' open' : '';
      return `<details class="nested"${open}><summary>${titleOf(inner, names.length)}</summary>${fieldList(inner)}</details>`;
    })
    .join('');
}

function titleOf(schema: TSchema, count: number): string {
  const kind = shapeOf(schema).properties?.type;
  const word = kind ? shapeOf(kind).const : undefined;
  return `${typeof word === 'string' ? `<code>${escapeText(word)}</code> · ` : ''}${count} ${count === 1 ? 'field' : 'fields'}`;
}

/** The objects with fields of their own that a value may be, or be a list of. */
function objectsIn(schema: TSchema): readonly TSchema[] {
  const { anyOf, items, properties } = shapeOf(schema);
  if (anyOf) return anyOf.flatMap(objectsIn);
  if (items) return objectsIn(items);
  return properties && Object.keys(properties).length > 0 ? [schema] : [];
}

function typeWords(schema: TSchema): string {
  const { items, anyOf } = shapeOf(schema);
  if (anyOf) return [...new Set(anyOf.map(typeWords))].join(' or ');
  if (!items) return expectation(schema).replace(/^an? /, '');
  const inner = typeWords(items);
  return `${expectation(schema).replace(/^a /, '')}: ${inner}`;
}

// ---- examples ------------------------------------------------------------------------------------------------------

const SESSION = '019ab2c4-7d10-7a0e-9a53-0f1c3a2f7d11';
const APPLICATION = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const WHEN = '2026-09-24T10:15:30.123Z';
const LATER = '2026-09-24T11:15:30.123Z';

/** Values for fields by name, so that examples of all nouns tell one story. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  projectId: APPLICATION,
  applicationId: APPLICATION,
  billingAccountId: '0199f7c2-0001-7a0e-9a53-0f1c3a2f7d10',
  ownerId: '0199f7c2-0001-7a0e-9a53-0f1c3a2f7d10',
  status: 'RUNNING',
  region: 'local',
  keepAlive: true,
  userMetadata: { run: 'r-1842' },
  signingKey: 'k_…',
  seleniumRemoteUrl: 'https://browsers.example/v1/browsers/webdriver',
  connectUrl: `wss://browsers.example/v1/browsers/sessions/${SESSION}/connect?signingKey=k_…`,
  webSocketDebuggerUrl: `wss://browsers.example/v1/browsers/sessions/${SESSION}/connect?signingKey=k_…`,
  Browser: 'Chrome/156.0.0.0',
  'Protocol-Version': '1.3',
  slug: 'shop-agent',
  environment: 'development',
  role: 'owner',
  revision: 1,
  cidrAllow: [],
  warnings: [],
  proxyBytes: 0,
  browserMinutes: 412.5,
  defaultTimeout: 3600,
  concurrency: 10,
  expiresAt: LATER,
  sessionId: SESSION,
  version: '0.1.0',
  docs: '/docs',
  openapi: '/openapi.yaml',
};

/** Fields that a plain answer does not have. */
const LEFT_OUT = [
  'endedAt',
  'endReason',
  'contextId',
  'uploads',
  'revokedAt',
  'lastUsedAt',
  'lastUsedIp',
  'nextCursor',
  'detail',
  'details',
];

export interface ExampleOptions {
  /** More samples, which win over the common ones. */
  readonly samples?: Readonly<Record<string, unknown>>;
  readonly leaveOut?: readonly string[];
}

export function exampleOf(schema: TSchema, { samples = {}, leaveOut = [] }: ExampleOptions = {}): unknown {
  const known = { ...SAMPLES, ...samples };
  const make = (inner: TSchema, name: string): unknown => {
    if (Object.hasOwn(known, name)) return known[name];
    const { anyOf, properties, items, enum: words, const: word, type, format } = shapeOf(inner);
    if (word !== undefined) return word;
    if (words) return words[0];
    if (anyOf?.[0]) return make(anyOf[0], name);
    if (items) return [make(items, '')];
    if (properties)
      return Object.fromEntries(
        Object.entries(properties)
          .filter(([key]) => !LEFT_OUT.includes(key) && !leaveOut.includes(key))
          .map(([key, field]) => [key, make(field, key)]),
      );
    if (type === 'boolean') return true;
    if (type === 'integer' || type === 'number') return 1;
    if (type === 'object') return {};
    if (format === 'uuid') return SESSION;
    return format === 'date-time' ? WHEN : name;
  };
  return make(schema, '');
}
