import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDecisions } from './decisions.ts';

const DECISIONS = {
  'docs/decisions/0001-one.md': '# 0001: One\n\ntext\n',
  'docs/decisions/0002-two.md': '# 0002: Two\n\ntext\n',
};
const ONE = '- [0001: One](0001-one.md)';
const TWO = '- [0002: Two](0002-two.md)';

const violationsOf = (...lines: string[]): string[] => {
  const texts = { ...DECISIONS, 'docs/decisions/README.md': ['# Decisions', '', ...lines, ''].join('\n') };
  return checkDecisions(Object.entries(texts).map(([path, text]) => ({ path, text }))).map(
    ({ path, what }) => `${path}: ${what}`,
  );
};

test('accepts an index that lists each decision once, in order, under its title', () => {
  assert.deepEqual(violationsOf(ONE, TWO), []);
});

test('reports a decision that the index does not list', () => {
  assert.deepEqual(violationsOf(ONE), [
    'docs/decisions/0002-two.md: the index of decisions does not list this file under its title',
  ]);
});

test('reports an index with a wrong title, a line without a decision, a repeated line, or a wrong order', () => {
  assert.equal(violationsOf(ONE, '- [0002: Too](0002-two.md)').length, 2);
  assert.equal(violationsOf(ONE, TWO, '- [0003: Three](0003-three.md)').length, 1);
  assert.equal(violationsOf(ONE, ONE, TWO).length, 1);
  assert.equal(violationsOf(TWO, ONE).length, 1);
});
