// A keyed digest that identifies a request without storing its content.
import { createHmac } from 'node:crypto';
import type { Secret } from '../../kit/secret.ts';

/**
 * Returns the digest of a request. It is keyed, because a body may contain a password that could be guessed from a
 * plain digest. The order of fields does not matter.
 */
export const requestDigest = (secret: Secret, request: unknown): Buffer =>
  createHmac('sha256', secret.reveal())
    .update(`request:${canonicalText(request)}`)
    .digest();

function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, inner]) => `${JSON.stringify(name)}:${canonicalText(inner)}`);
  return `{${members.join(',')}}`;
}
