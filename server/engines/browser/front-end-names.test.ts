import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findReferences } from './front-end-names.ts';

const referencesIn = (path: string, content: string): string[] => [...findReferences(path, Buffer.from(content))];

test('finds the files referenced by imports, workers, images and styles', () => {
  const text = `import"../shell/shell.js";import*as a from"./a-b.js";const b=()=>import('../../panels/x/x.js');
    new URL("../../Images/3d.svg",import.meta.url);new Worker(new URL('../w/w-entrypoint.js', import.meta.url))`;
  assert.deepEqual(referencesIn('entrypoints/app/app.js', text), [
    'entrypoints/shell/shell.js',
    'entrypoints/app/a-b.js',
    'panels/x/x.js',
    'Images/3d.svg',
    'entrypoints/w/w-entrypoint.js',
  ]);
  assert.deepEqual(referencesIn('app.html', '<link href="./tokens.css"><script src="./a/b.js">'), [
    'tokens.css',
    'a/b.js',
  ]);
  assert.deepEqual(referencesIn('ui/x.css', 'a{background:url(../Images/y.svg)}'), ['Images/y.svg']);
  assert.deepEqual(referencesIn('models/issues/issues.js', 'file: "cookie.md"'), [
    'models/issues/descriptions/cookie.md',
  ]);
});

test('ignores other origins, absolute paths, folders and the content of images', () => {
  assert.deepEqual(referencesIn('a.js', 'import "https://example.com/x.js"; fetch("/v1/x.json"); x = "./folder/"'), []);
  assert.deepEqual(referencesIn('a.png', '"./x.js"'), []);
  assert.deepEqual(referencesIn('a.js', 'import "../../../../v1/x.js"'), ['v1/x.js'], 'stays below the root');
});
