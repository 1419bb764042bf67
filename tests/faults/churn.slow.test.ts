// As churn.test.ts, a thousand cycles and two hundred.
import { churnTests } from './churn-tests.ts';

await churnTests({ counted: 1000, restarting: 200, growthMibMax: 24 });
