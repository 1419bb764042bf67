// A program that uses a session with Stagehand 4 until it is killed: `node stagehand4-client.ts BASE_URL KEY PAGE`.
import './only-loopback.ts';
import { browserbase, Stagehand } from 'stagehand4';

const [baseUrl = '', apiKey = '', url = ''] = process.argv.slice(2);
const browser = await browserbase.launch({ apiKey, baseUrl });
await Stagehand.create({ browser, model: { modelName: 'openai/gpt-4.1-mini', apiKey: 'none' } });
const [page] = await browser.context.pages();
await page?.goto(url);
process.stdout.write(`running ${browser.sessionId}\n`);
