// Cycles of create, drive and release with random kills leave nothing behind: a hundred with warm browsers and a count
// every second, and twenty in which the server is killed too. churn.slow.test.ts runs ten times as many with the engine
// chromium.
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ counted: 100, restarting: 20, growthMibMax: 64, engine: LIGHT_ENGINE });
