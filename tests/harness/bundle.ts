// The server code that a test starts: a bundle (tools/bundle-server.ts) if BERTH_TEST_BUNDLE names its folder,
// otherwise the source.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const CHECKOUT = join(import.meta.dirname, '../..');
const BUNDLE_FOLDER = process.env.BERTH_TEST_BUNDLE;

const pathOf = (name: string, source: string): string =>
  BUNDLE_FOLDER ? join(BUNDLE_FOLDER, `${name}.mjs`) : join(CHECKOUT, source);

export const PROGRAM = pathOf('berth', 'cli/berth.ts');
export const CLOCK_PROGRAM = pathOf('serve-with-clock', 'tests/harness/serve-with-clock.ts');
export const WATCH_RESPONSES_URL = pathToFileURL(pathOf('watch-responses', 'tests/harness/watch-responses.ts')).href;
const COMMANDS_URL = pathToFileURL(pathOf('run', 'cli/run.ts')).href;

export const loadCommands = (): Promise<typeof import('../../cli/run.ts')> => import(COMMANDS_URL);

/** Returns the path of the program that `npm start` runs, for benchmarks. Builds the program if necessary. */
export async function bundledProgram(): Promise<string> {
  if (BUNDLE_FOLDER) return PROGRAM;
  const { bundleServer } = await import('../../tools/bundle-server.ts');
  return join(await bundleServer(), 'berth.mjs');
}
