// Cycles that create, drive and release a session, with random kills, leave nothing behind. The first test runs a
// hundred cycles with warm browsers and a count every second. The second test runs twenty cycles and also kills the
// server. churn.slow.test.ts runs ten times as many cycles, by default with the engine chromium.
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ countedCycles: 100, restartCycles: 20, growthMibMax: 64, engine: LIGHT_ENGINE });
