// What a file of DevTools names of the others: addresses beside its own, as imports, workers, pictures and styles spell them.

const TEXT = /\.(?:js|html|css|json|svg)$/;
const NAMES = /["'`(](\.{1,2}\/[\w./-]+\.(?:js|html|css|json|svg|png|avif|webp|gif|wasm|woff2|md))["'`)]/g;
/** Texts about issues: named without their folder. */
const DESCRIPTIONS = /["'`]([\w-]+\.md)["'`]/g;
const BASE = 'http://devtools/';

/** Paths under the front end's root. */
export function findNames(path: string, content: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  if (!TEXT.test(path)) return names;
  const text = content.toString('utf8');
  for (const [, name] of text.matchAll(NAMES)) if (name !== undefined) names.add(beside(path, name));
  for (const [, name] of text.matchAll(DESCRIPTIONS))
    if (name !== undefined) names.add(beside(path, `descriptions/${name}`));
  return names;
}

const beside = (path: string, name: string): string => new URL(name, BASE + path).pathname.slice(1);
