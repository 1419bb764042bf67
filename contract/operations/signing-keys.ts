// The public signing keys.
import type { Operation } from '../operation.ts';
import { JsonWebKeySet } from '../signing-keys.ts';

export const SIGNING_KEY_OPERATIONS = {
  readSigningKeys: {
    tag: 'Service',
    method: 'GET',
    path: '/.well-known/jwks.json',
    summary: 'Read the public signing keys',
    description:
      'Returns the keys that verify what this installation signs: receipts of invocations, and the seals of its audit log. A retired key remains listed for 400 days.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: {
        description: 'The keys.',
        schema: JsonWebKeySet,
        headers: {
          'cache-control': 'How long the keys may be cached.',
          'access-control-allow-origin': '`*`.',
        },
      },
    },
    errors: ['database_unreachable'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
