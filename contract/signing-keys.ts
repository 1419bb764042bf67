// The public keys with which anyone can verify the signatures of Berth.
import { type Static, Type } from 'typebox';
import { Time } from './common.ts';

export const JsonWebKeySet = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Type.Enum(['OKP']),
        crv: Type.Enum(['Ed25519']),
        alg: Type.Enum(['EdDSA']),
        use: Type.Enum(['sig']),
        kid: Type.String({ description: 'Id of the key: its thumbprint (RFC 7638).' }),
        x: Type.String({ description: 'The public key, in base64url.' }),
        berth_retired_at: Type.Optional(Time('When the key was retired. It has signed nothing since then.')),
      }),
      { description: 'The current signing key, and the keys that were retired in the last 400 days.' },
    ),
  },
  { description: 'A JSON Web Key Set (RFC 7517).' },
);
export type JsonWebKeySet = Static<typeof JsonWebKeySet>;
