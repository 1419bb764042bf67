import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changelogFor } from './changelog.ts';

const at = new Date('2026-11-24T23:00:00Z');

test('turns the unreleased section into the section of the version', () => {
  assert.equal(
    changelogFor('# Changelog\n\n## Unreleased\n\n- One.\n\n## 1.0.0\n', '1.1.0', at),
    '# Changelog\n\n## 1.1.0 (2026-11-24)\n\n- One.\n\n## 1.0.0\n',
  );
});

test('keeps an existing section of the version unchanged', () => {
  const text = '# Changelog\n\n## 1.1.0 (2026-11-01)\n\n- One.\n';
  assert.equal(changelogFor(text, '1.1.0', at), text);
});

test('refuses a version that already has a section if there are unreleased changes', () => {
  const text = '# Changelog\n\n## Unreleased\n\n- Two.\n\n## 1.1.0\n\n- One.\n';
  assert.throws(() => changelogFor(text, '1.1.0', at), /raise the version in package\.json/);
});

test('refuses a version if the changelog has neither a section for it nor an Unreleased section', () => {
  assert.throws(() => changelogFor('# Changelog\n\n## 1.0.0\n', '1.1.0', at), /neither/);
});
