#!/usr/bin/env node
// The program `berth`: hands the process's arguments, environment and streams to the commands, and their exit code back.
import { runBerth } from './run.ts';

/** What is written may need a moment to go out. Whatever else keeps the process alive after its work has no right to. */
const LINGER_MS = 2_000;

// Whoever read our output may leave before we are done (`| head`, a closed terminal): no reason to die, least of all for
// a server.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

process.exitCode = await runBerth(process.argv.slice(2), {
  env: process.env,
  print: text => process.stdout.write(text),
  say: text => process.stderr.write(text),
});

setTimeout(() => {
  process.stderr.write(`berth: ended with open ${process.getActiveResourcesInfo().join(', ')}\n`);
  process.exit();
}, LINGER_MS).unref();
