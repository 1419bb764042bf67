import { test } from 'node:test';
import { startServer } from './server.ts';
import { CdpClient } from './cdp.ts';
for (const clock of ['real', 'test'] as const)
test('sigterm ' + clock, async () => {
  const server = await startServer({ clock, env: {BERTH_LOG_LEVEL: 'debug'} });
  const s = await server.createSession({keepAlive: true});
  const c = await CdpClient.connect(s.connectUrl);
  const page = await c.attachToPage();
  await c.evaluate('globalThis.left = "here"', page);
  console.time('t');
  const k = server.kill('SIGTERM');
  setTimeout(() => console.log(server.log().slice(-15).join('\n')), 5000);
  console.log(await k);
  console.timeEnd('t');
  await server.start();
});
