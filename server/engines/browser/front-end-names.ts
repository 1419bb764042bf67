// Finds the files that a DevTools file refers to: relative paths in imports, workers, images and styles.

const TEXT_FILE = /\.(?:js|html|css|json|svg)$/;
const REFERENCES = /["'`(](\.{1,2}\/[\w./-]+\.(?:js|html|css|json|svg|png|avif|webp|gif|wasm|woff2|md))["'`)]/g;
/**
 * Matches the names of the Markdown files that describe DevTools issues. Other files refer to them by name, without
 * their folder.
 */
const DESCRIPTIONS = /["'`]([\w-]+\.md)["'`]/g;
const BASE = 'http://devtools/';

/** Returns the paths of the files, relative to the root of the front end. */
export function findReferences(path: string, content: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  if (!TEXT_FILE.test(path)) return names;
  const text = content.toString('utf8');
  for (const [, name] of text.matchAll(REFERENCES)) if (name !== undefined) names.add(resolve(path, name));
  for (const [, name] of text.matchAll(DESCRIPTIONS))
    if (name !== undefined) names.add(resolve(path, `descriptions/${name}`));
  return names;
}

const resolve = (path: string, name: string): string => new URL(name, BASE + path).pathname.slice(1);
