// Validates the HTTP call of an operation, field by field. Pure.
import type { Issue } from '../../../contract/common.ts';
import type { HttpBinding } from '../../../contract/configured-operations.ts';
import { headerNameProblem, headerValueProblem } from './http-headers.ts';
import { isPointer, referenceTokensOf } from './json-pointer.ts';
import { IDEMPOTENCY_KEY_HEADER, SIGNATURE_HEADERS } from './message-signature.ts';
import { readTemplate } from './url-template.ts';

/**
 * Returns the issues found in the binding. `properties` contains the names of the members that the input may have, or
 * is undefined if the schema does not list them.
 */
export function bindingIssues(binding: HttpBinding, properties: ReadonlySet<string> | undefined): Issue[] {
  const { method, body, auth } = binding;
  return [
    ...urlIssues(binding, properties),
    ...pointerIssues(binding, properties),
    ...headerIssues(binding),
    ...(body && (method === 'GET' || method === 'HEAD')
      ? [{ path: 'binding.body', message: `is not allowed with ${method}` }]
      : []),
    ...(auth && (auth.as === 'header') !== (auth.header !== undefined)
      ? [{ path: 'binding.auth.header', message: 'is required with "as": "header", and is not allowed otherwise' }]
      : []),
  ];
}

function urlIssues({ url }: HttpBinding, properties: ReadonlySet<string> | undefined): Issue[] {
  const path = 'binding.url';
  const template = readTemplate(url);
  if (typeof template === 'string') return [{ path, message: template }];
  const variables = [...template.pathVariables, ...template.queryVariables];
  return variables
    .filter(name => properties && !properties.has(name))
    .map(name => ({ path, message: `has the variable ${name}, which inputSchema does not define` }));
}

function pointerIssues(
  { query = {}, headers = {}, body }: HttpBinding,
  properties: ReadonlySet<string> | undefined,
): Issue[] {
  const pointers = [
    ...Object.entries(query).map(([name, pointer]) => [`binding.query.${name}`, pointer] as const),
    ...Object.entries(headers).map(([name, pointer]) => [`binding.headers.${name}`, pointer] as const),
    ...(body ? [['binding.body.from', body.from] as const] : []),
  ];
  return pointers.flatMap(([path, pointer]) => {
    if (!isPointer(pointer)) return [{ path, message: 'is not a JSON Pointer such as /orderId' }];
    const [memberName] = referenceTokensOf(pointer);
    return memberName !== undefined && properties && !properties.has(memberName)
      ? [{ path, message: `refers to the property ${memberName}, which inputSchema does not define` }]
      : [];
  });
}

function headerIssues({ headers = {}, fixedHeaders = {}, auth, idempotencyHeader, sign }: HttpBinding): Issue[] {
  const namedHeaders = [
    ...Object.keys(headers).map(name => [`binding.headers.${name}`, name] as const),
    ...Object.keys(fixedHeaders).map(name => [`binding.fixedHeaders.${name}`, name] as const),
    ...(auth?.header === undefined ? [] : [['binding.auth.header', auth.header] as const]),
    ...(idempotencyHeader === undefined ? [] : [['binding.idempotencyHeader', idempotencyHeader] as const]),
  ];
  // The service sets these headers itself. `Idempotency-Key` is allowed as `idempotencyHeader`, because that setting
  // and the signature both give it the same value.
  const isSetByService = (path: string, name: string): boolean =>
    sign === true &&
    SIGNATURE_HEADERS.has(name.toLowerCase()) &&
    !(path === 'binding.idempotencyHeader' && name.toLowerCase() === IDEMPOTENCY_KEY_HEADER);
  const seenNames = new Set<string>();
  const issues = namedHeaders.flatMap(([path, name]) => {
    const isRepeated = seenNames.has(name.toLowerCase());
    seenNames.add(name.toLowerCase());
    const problem =
      headerNameProblem(name) ??
      (isRepeated ? 'is set twice' : isSetByService(path, name) ? 'is set by the service in a signed call' : undefined);
    return problem === undefined ? [] : [{ path, message: problem }];
  });
  const valueIssues = Object.entries(fixedHeaders).flatMap(([name, value]) => {
    const problem = headerValueProblem(value);
    return problem === undefined ? [] : [{ path: `binding.fixedHeaders.${name}`, message: problem }];
  });
  return [...issues, ...valueIssues];
}
