// Cycles of create, drive and release with random kills leave nothing behind: a hundred with warm browsers and a count
// every second, twenty in which the server is killed too. Ten times as many, of the engine chromium: churn.slow.test.ts.
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ counted: 100, restarting: 20, growthMibMax: 64, engine: LIGHT_ENGINE });
