// Refuses unknown query parameters, because a misspelled filter would silently filter nothing.
import { fault } from '../../domain/faults.ts';
import { nearestWord } from '../../kit/nearest.ts';

const NAME_CHARACTERS_SHOWN = 64;

export function refuseUnknownQuery(query: object, knownNames: readonly string[]): void {
  const unknownName = Object.keys(query).find(name => !knownNames.includes(name));
  if (unknownName === undefined) return;
  const name = unknownName.slice(0, NAME_CHARACTERS_SHOWN);
  const suggestion = nearestWord(name, knownNames);
  throw fault('invalid_query', `Unknown query parameter ${JSON.stringify(name)}.`, {
    advice:
      suggestion === undefined
        ? 'This operation has no query parameters.'
        : `Did you mean ${suggestion}? The parameters of this operation are ${knownNames.join(', ')}.`,
    details: { parameter: name, ...(suggestion === undefined ? {} : { nearest: suggestion }), known: knownNames },
  });
}
