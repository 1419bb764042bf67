// The engine that the suites run on: BERTH_TEST_ENGINE, which `npm run test:slow` sets for a second round.
import { ENGINES, type Engine } from '../../contract/sessions.ts';

export const TEST_ENGINE: Engine = ENGINES.find(engine => engine === process.env.BERTH_TEST_ENGINE) ?? 'chromium';

/**
 * The engine for tests that start many sessions and do not depend on the browser. Starting this engine takes half as
 * much CPU time as starting Chromium.
 */
export const LIGHT_ENGINE: Engine = 'headless-shell';

/** Whether the suites run on Chromium. Headless shell refuses some settings, as described in docs/engines.md. */
export const IS_CHROMIUM = TEST_ENGINE === 'chromium';
