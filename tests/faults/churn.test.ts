// Cycles that create, drive and release a session, with random kills, leave nothing behind. Both tests use warm
// browsers. The first test runs a hundred cycles, and compares the numbers of running sessions, browsers and slots
// every second. The second test runs twenty cycles and also kills the server. churn.slow.test.ts runs ten times as many
// cycles, by default with the engine chromium.
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ countedCycles: 100, restartCycles: 20, growthMibMax: 64, engine: LIGHT_ENGINE });
