// The parts of a schema that the API reference uses.
import type { TSchema } from 'typebox';

export interface Shape {
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
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

/** Returns the schema with types for the parts that are read here. A TypeBox schema is a JSON Schema object. */
export const shapeOf = (schema: TSchema): Shape => schema as Shape;
