// The types of the SDK, made from the OpenAPI document by openapi-typescript. Routes for clients of other services are
// left out, and so are the parts of a response that a TypeScript program does not see: its headers, and the individual
// errors.
import { registerHooks } from 'node:module';
import { CLIENT_TYPES_PATH, type GeneratedFile } from './fresh.ts';

/** openapi-typescript needs the compiler API, which TypeScript 7 does not have. */
const hooks = registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'typescript' ? 'typescript6' : specifier, context),
});
const { astToString, default: openapiTS } = await import('openapi-typescript');
hooks.deregister();

type JsonMap = Readonly<Record<string, unknown>>;

const COMPATIBILITY_TAG = 'Compatibility';
const JSON_TYPE = 'application/json';
const FAILURE = {
  description: 'A failure.',
  content: { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } },
};

export async function clientTypesFile(document: unknown, note: string): Promise<GeneratedFile> {
  const { paths, ...rest } = requireMap(document);
  const clientDocument = JSON.stringify({ ...rest, paths: clientPaths(requireMap(paths)) });
  const nodes = await openapiTS(clientDocument, { silent: true, defaultNonNullable: false, emptyObjectsUnknown: true });
  return { path: CLIENT_TYPES_PATH, text: `// ${note}\n${astToString(nodes)}` };
}

function clientPaths(paths: JsonMap): Record<string, JsonMap> {
  const pathEntries = Object.entries(paths).map(
    ([path, methods]) => [path, clientMethods(requireMap(methods))] as const,
  );
  return Object.fromEntries(pathEntries.filter(([, methods]) => Object.keys(methods).length > 0));
}

const clientMethods = (methods: JsonMap): JsonMap =>
  Object.fromEntries(
    Object.entries(methods)
      .map(([method, operation]) => [method, requireMap(operation)] as const)
      .filter(([, { tags }]) => !(Array.isArray(tags) && tags.includes(COMPATIBILITY_TAG)))
      .map(([method, operation]) => [
        method,
        { ...operation, responses: clientResponses(requireMap(operation.responses)) },
      ]),
  );

function clientResponses(responses: JsonMap): JsonMap {
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 400);
  const successResponses = successes.map(([status, spec]) => [status, clientResponse(requireMap(spec))] as const);
  return { ...Object.fromEntries(successResponses), default: FAILURE };
}

/**
 * Keeps only the JSON form of a response, if it has one, because the response to a request without `Accept` is JSON.
 */
function clientResponse({ description, content }: JsonMap): JsonMap {
  if (content === undefined) return { description };
  const mediaTypes = requireMap(content);
  return { description, content: JSON_TYPE in mediaTypes ? { [JSON_TYPE]: mediaTypes[JSON_TYPE] } : mediaTypes };
}

function requireMap(value: unknown): JsonMap {
  if (!isMap(value)) throw new Error(`the OpenAPI document has ${JSON.stringify(value)} where an object is expected`);
  return value;
}

const isMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
