// Reads members of log entries, which may have any shape because they contain data from pages.
import type { JsonObject } from '../../../contract/common.ts';

export const asText = (value: unknown): string => (typeof value === 'string' ? value : '');

export const asNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const asObject = (value: unknown): JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : {};
