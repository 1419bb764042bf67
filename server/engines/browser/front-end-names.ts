// Finds the files that a DevTools file refers to: relative paths in imports, workers, images and styles.

const TEXT_FILE_PATTERN = /\.(?:js|html|css|json|svg)$/;
const REFERENCE_PATTERN = /["'`(](\.{1,2}\/[\w./-]+\.(?:js|html|css|json|svg|png|avif|webp|gif|wasm|woff2|md))["'`)]/g;
/**
 * Matches the names of the Markdown files that describe DevTools issues. Other files refer to them by name, without
 * their folder.
 */
const DESCRIPTION_PATTERN = /["'`]([\w-]+\.md)["'`]/g;
const BASE = 'http://devtools/';

/** Returns the paths of the files, relative to the root of the front end. */
export function findReferences(path: string, content: Buffer): ReadonlySet<string> {
  const paths = new Set<string>();
  if (!TEXT_FILE_PATTERN.test(path)) return paths;
  const text = content.toString('utf8');
  for (const [, name] of text.matchAll(REFERENCE_PATTERN)) if (name !== undefined) paths.add(resolve(path, name));
  for (const [, name] of text.matchAll(DESCRIPTION_PATTERN))
    if (name !== undefined) paths.add(resolve(path, `descriptions/${name}`));
  return paths;
}

const resolve = (path: string, name: string): string => new URL(name, BASE + path).pathname.slice(1);
