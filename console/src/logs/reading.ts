// Reads members of log entries, which may have any shape because they contain data from pages.
import type { JsonObject } from '../../../contract/common.ts';

export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

export const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const object = (value: unknown): JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : {};
