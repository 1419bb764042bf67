// Health, readiness, and the description of the service.
import { type Static, Type } from 'typebox';

export const Health = Type.Object({ status: Type.Enum(['ok']) });

export const Check = Type.Object({
  name: Type.String(),
  ok: Type.Boolean(),
  detail: Type.Optional(Type.String({ description: 'Description of the problem, for the operator.' })),
});

export const Readiness = Type.Object({
  status: Type.Enum(['ready', 'not_ready']),
  checks: Type.Array(Check),
});
export type Readiness = Static<typeof Readiness>;

export const Welcome = Type.Object({
  name: Type.String(),
  version: Type.String(),
  docs: Type.String({ description: 'Path of the API reference.' }),
  openapi: Type.String({ description: 'Path of the OpenAPI document.' }),
});
export type Welcome = Static<typeof Welcome>;
