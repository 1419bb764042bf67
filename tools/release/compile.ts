// Compiles the sources to JavaScript: without their types, and with imports that name the compiled files. Types become
// spaces, so that lines and columns of a stack trace are those of the source.
import { stripTypeScriptTypes } from 'node:module';

/** Matches the relative path of a source file, as it appears in imports and in the URLs of worker threads. */
const RELATIVE_IMPORT = /(['"])(\.{1,2}\/[^'"\n]+)\.ts\1/g;

export const compileSource = (source: string): string =>
  stripTypeScriptTypes(source).replace(RELATIVE_IMPORT, '$1$2.js$1');
