// Checks a response of the server against the OpenAPI document: status, headers and body must be described. Paths
// without an operation in the document are ignored.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument } from '../../contract/openapi.ts';

export interface ObservedResponse {
  readonly method: string;
  /** The URL as in the request line. */
  readonly url: string;
  readonly status: number;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, if it is JSON. Undefined if it was too large to keep. */
  readonly body?: string;
}

interface DescribedOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Response>>;
}
interface Response {
  readonly headers?: Readonly<Record<string, { readonly $ref?: string; readonly required?: boolean }>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly headers: Readonly<Record<string, { readonly required?: boolean }>> };
}
interface Route {
  readonly path: string;
  readonly pattern: RegExp;
  readonly operations: Readonly<Record<string, DescribedOperation>>;
}

const ALTERNATIVE_PREFIX = '/v1/browsers/v1/';
const ANY_TYPE = '*/*';
/** The name of the document in references to its components. */
const DOCUMENT = 'openapi';
/** Headers that are allowed in every response, because they concern the connection or the body, or are for browsers. */
const ALWAYS_ALLOWED_HEADERS = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
  ...['cache-control', 'content-security-policy', 'cross-origin-resource-policy', 'referrer-policy'],
  ...['x-content-type-options', 'x-frame-options'],
  'x-berth-room-elsewhere', // sent from one host to another, which removes it
]);

const FORMATS = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  uri: (text: string) => URL.canParse(text),
};

export class ResponseValidator {
  readonly #document: Document;
  readonly #routes: readonly Route[];
  readonly #ajv = new Ajv2020({
    ...{ strict: false, validateSchema: false, logger: false, formats: FORMATS },
    code: { optimize: false }, // optimizing takes longer than it saves: a server validates few values
  });
  readonly #validators = new Map<object, ValidateFunction>();

  constructor() {
    this.#document = openApiDocument() as unknown as Document; // our own document
    // The components are added once rather than with each schema, because ajv reads all of them each time.
    this.#ajv.addSchema({ $id: DOCUMENT, components: closeSchema(this.#document.components) });
    this.#routes = Object.entries(this.#document.paths)
      .map(([path, operations]) => ({ path, pattern: patternOf(path), operations }))
      // Fixed path segments precede parameters.
      .sort((one, other) => one.path.split('{').length - other.path.split('{').length);
  }

  /** Returns a description of the parts that do not match the document, or undefined if everything matches. */
  complaint(seen: ObservedResponse): string | undefined {
    const [requestPath = ''] = seen.url.split('?', 1);
    const path = requestPath.startsWith(ALTERNATIVE_PREFIX)
      ? `/v1/${requestPath.slice(ALTERNATIVE_PREFIX.length)}`
      : requestPath;
    const route = this.#routes.find(({ pattern }) => pattern.test(path));
    const method = seen.method === 'HEAD' ? 'get' : seen.method.toLowerCase();
    const operation = route?.operations[method];
    if (!operation || isUnknownRoute(seen)) return undefined;
    const what = this.#problem(seen, operation);
    return what && `${operation.operationId}: ${seen.method} ${requestPath} ${seen.status}: ${what}`;
  }

  #problem(seen: ObservedResponse, { responses }: DescribedOperation): string | undefined {
    const response = responses[seen.status];
    if (!response) return `the status is not described; body ${seen.body?.slice(0, 300)}`;
    return this.#headerProblem(seen, response) ?? this.#bodyProblem(seen, response);
  }

  #headerProblem({ headers }: ObservedResponse, response: Response): string | undefined {
    const described = new Map(Object.entries(response.headers ?? {}).map(([name, one]) => [name.toLowerCase(), one]));
    const unknown = Object.keys(headers).filter(name => !described.has(name) && !ALWAYS_ALLOWED_HEADERS.has(name));
    if (unknown.length > 0) return `headers that are not described: ${unknown.join(', ')}`;
    const missing = [...described].filter(([name, one]) => !(name in headers) && this.#isRequired(one));
    if (missing.length > 0) return `headers are missing: ${missing.map(([name]) => name).join(', ')}`;
    return undefined;
  }

  #isRequired({ $ref = '', required }: { readonly $ref?: string; readonly required?: boolean }): boolean {
    return required ?? this.#document.components.headers[$ref.split('/').at(-1) ?? '']?.required ?? false;
  }

  #bodyProblem(seen: ObservedResponse, response: Response): string | undefined {
    const type = seen.headers['content-type']?.split(';', 1)[0]?.trim();
    const { content = {} } = response;
    if (Object.keys(content).length === 0) return type ? `a body of type ${type} where none is described` : undefined;
    if (type === undefined) return seen.method === 'HEAD' ? undefined : 'no content type';
    // A file has its own content type, which may also be JSON.
    const isFile = seen.headers['content-disposition'] !== undefined && ANY_TYPE in content;
    const described = content[isFile || !(type in content) ? ANY_TYPE : type];
    if (described === undefined) return `the type ${type} is not described`;
    if (described === content[ANY_TYPE] || !/^application\/([\w.-]+\+)?json$/.test(type)) return undefined;
    if (seen.body === undefined || seen.method === 'HEAD') return undefined;
    const validate = this.#validator(described.schema);
    if (validate(JSON.parse(seen.body))) return undefined;
    const errorTexts = (validate.errors ?? []).map(
      error => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`,
    );
    return `the body does not fit: ${errorTexts.join('; ')}; body ${seen.body.slice(0, 300)}`;
  }

  /** Returns the validator for the schema, which is compiled at the first use. */
  #validator(schema: object): ValidateFunction {
    const known = this.#validators.get(schema) ?? this.#ajv.compile(closeSchema(schema));
    this.#validators.set(schema, known);
    return known;
  }
}

/** Whether the server has no such operation, because its paths are disabled or the request used another host name. */
const isUnknownRoute = ({ status, body }: ObservedResponse): boolean =>
  status === 404 && body !== undefined && Object(JSON.parse(body)).code === 'route_not_found';

function patternOf(path: string): RegExp {
  const words = path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${words}${path.endsWith('/json/version') ? '/?' : ''}$`);
}

/**
 * Returns the schema with additional fields forbidden, although schemas of responses allow them. References begin with
 * the name of the document.
 */
function closeSchema(schema: object): Record<string, unknown> {
  const inner = Object.fromEntries(Object.entries(schema).map(([name, one]) => [name, closeValue(name, one)]));
  const isClosed =
    inner.type === 'object' && inner.properties !== undefined && inner.additionalProperties === undefined;
  return isClosed ? { ...inner, additionalProperties: false } : inner;
}

function closeValue(name: string, value: unknown): unknown {
  if (name === '$ref') return `${DOCUMENT}${value}`;
  if (Array.isArray(value)) return value.map(one => closeValue('', one));
  return typeof value === 'object' && value !== null ? closeSchema(value) : value;
}
