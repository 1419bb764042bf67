// Rules for the grants of agent keys. They do not check whether an operation exists: a grant for an operation that does
// not exist grants nothing.
import { ANY_OPERATION, type Grant } from '../../../contract/grants.ts';
import { invalidRequest } from '../faults.ts';
import { assertInputSchema } from './input-schema.ts';

/** The operation in which the calling agent chooses the steps. */
const STEPS_OPERATION = 'browser.steps';

export function cleanGrants(grants: readonly Grant[] = []): Grant[] {
  const seenNames = new Set<string>();
  grants.forEach(({ operationId, revision, effect, input, credentials }, index) => {
    const path = `grants[${index}]`;
    if (operationId === ANY_OPERATION && effect !== 'read') throw readEffectRequired(path);
    if (operationId === ANY_OPERATION && revision !== undefined)
      throw invalidRequest([
        { path: `${path}.revision`, message: 'is allowed only in a grant for a single operation' },
      ]);
    const grantName = revision === undefined ? operationId : `${operationId}, revision ${revision}`;
    if (seenNames.has(grantName))
      throw invalidRequest([{ path, message: `repeats the grant for ${grantName}; combine the two grants` }]);
    seenNames.add(grantName);
    if (credentials && operationId !== STEPS_OPERATION)
      throw invalidRequest([
        {
          path: `${path}.credentials`,
          message: `is allowed only for ${STEPS_OPERATION}; other operations define their credentials`,
        },
      ]);
    if (input) assertInputSchema(input, `${path}.input`);
  });
  return [...grants];
}

const readEffectRequired = (path: string): Error =>
  invalidRequest([{ path, message: 'is a grant for every operation, which requires "effect": "read"' }]);
