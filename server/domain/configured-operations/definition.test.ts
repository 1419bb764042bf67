import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ConfigureOperation } from '../../../contract/configured-operations.ts';
import { definitionOf } from './definition.ts';

const definitionWith = (text: string): ConfigureOperation => ({
  title: 'Weather',
  description: 'Reads the weather.',
  kind: 'http',
  effect: 'read',
  inputSchema: { type: 'object', additionalProperties: false, properties: {} },
  binding: { method: 'GET', url: 'https://weather.test/' },
  examples: [{ input: { text } }],
});

it('limits the size of a definition in bytes, not in characters', () => {
  const charCount = 150_000;
  assert.doesNotThrow(() => definitionOf(definitionWith('x'.repeat(charCount))));
  assert.throws(() => definitionOf(definitionWith('天'.repeat(charCount))), /larger than 256 KiB/);
});
