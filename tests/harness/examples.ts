// The examples of the documentation that are marked as runnable, each as a function that runs against a server.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runBlock, runnableBlocks } from '../../tools/run-docs.ts';
import { CHECKOUT, type TestServer } from './server.ts';

export interface Example {
  readonly line: number;
  /** Resolves with the output. Rejects if the example failed. */
  run(server: TestServer): Promise<string>;
}

/** Returns the examples by document. */
export function loadExamples(): ReadonlyMap<string, readonly Example[]> {
  const documents = [...globSync('docs/**/*.md', { cwd: CHECKOUT }), 'README.md'].sort();
  const documentExamples = documents.map(document => {
    const blocks = runnableBlocks(readFileSync(join(CHECKOUT, document), 'utf8'));
    const examples = blocks.map(block => ({
      line: block.line,
      run: ({ url, key }: TestServer) => runBlock(block, { url, key }),
    }));
    return [document, examples] as const;
  });
  return new Map(documentExamples.filter(([, blocks]) => blocks.length > 0));
}
