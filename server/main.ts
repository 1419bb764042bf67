// Start and end of one server process. SIGTERM leaves running sessions to the next server; SIGINT ends them first.
import cluster from 'node:cluster';
import { CONSOLE_LINK_LIFETIME_HOURS } from '../contract/tokens.ts';
import { type Config, readConfig } from './config.ts';
import { setUpAddress } from './domain/people/set-up-address.ts';
import { disableCoreDumps } from './engines/slots/core-files.ts';
import { type Clock, systemClock } from './kit/clock.ts';
import { BadConfig } from './kit/environment.ts';
import { isFault, reason } from './kit/fault.ts';
import type { Log } from './kit/log.ts';
import { openService, type Service } from './parts.ts';
import { openLog } from './pino-log.ts';
import { removeServerRecord, writeServerRecord } from './server-record.ts';
import { commandPrefix } from './version.ts';
import { sendReady } from './wiring/process-messages.ts';
import { runProcesses } from './wiring/supervise.ts';
import type { StopSignal } from './wiring/supervised.ts';

const EXIT = { ok: 0, failed: 1, badConfig: 2 } as const;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Runs the service until a signal stops it. Returns the exit code. */
export async function serve(env: Environment, clock: Clock = systemClock): Promise<number> {
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    return fail(error.message, EXIT.badConfig);
  }
  const whenStopRequested = waitForStopMode();
  const log = openLog(config.logLevel);
  logUnhandledRejections(log);
  disableCoreDumps(log);
  let step: 'start' | 'stop' = 'start';
  try {
    if (config.processes > 1 && !config.process) {
      const signalPromise = whenStopRequested.then(mode => (mode === 'leave' ? 'SIGTERM' : 'SIGINT') as StopSignal);
      return await runProcesses({ config, clock, log, whenStopRequested: signalPromise });
    }
    const service = await openService(config, clock, log);
    const { url, operatorUrl } = service;
    const { publicUrl } = config;
    const addresses = { url, publicUrl, ...(operatorUrl ? { operatorUrl } : {}) };
    if (config.process) sendReady(addresses);
    else writeServerRecord(config.dataDir, addresses);
    if ((config.process?.number ?? 1) === 1) process.stderr.write(greeting(config, service));
    const stopMode = await whenStopRequested;
    step = 'stop';
    log.info('service.stopping', { how: stopMode });
    await service.stop(stopMode);
    if (!config.process) removeServerRecord(config.dataDir);
    return EXIT.ok;
  } catch (error) {
    // `BadConfig` is also thrown after the settings have been read, for example if a file that they name cannot be
    // read.
    if (error instanceof BadConfig) return fail(error.message, EXIT.badConfig);
    return fail(explain(error, step), EXIT.failed);
  } finally {
    cluster.worker?.disconnect(); // An open channel to the supervisor would keep this process alive.
  }
}

/**
 * Resolves to the stop mode at the first signal. Later signals are ignored, because on Ctrl-C both the terminal and npm
 * send SIGINT.
 */
function waitForStopMode(): Promise<'leave' | 'drain'> {
  return new Promise(resolve => {
    process.on('SIGTERM', () => resolve('leave'));
    process.on('SIGHUP', () => resolve('leave'));
    process.on('SIGINT', () => resolve('drain'));
  });
}

/**
 * A bug in the handling of one session must not end the others: it is logged with its stack, and the process continues.
 */
function logUnhandledRejections(log: Log): void {
  process.on('unhandledRejection', error => log.error('service.unhandled_rejection', { error }));
}

function greeting(
  config: Config,
  { firstStartResult: startResult, isolation, missingFeatures: missing, url, operatorUrl }: Service,
): string {
  const base = config.publicUrl;
  const cliPrefix = commandPrefix();
  const lines = [
    '',
    `Berth listens on ${url}   (isolation: ${isolation})`,
    ...(operatorUrl ? [`  operator  ${operatorUrl}/metrics and /readyz`] : []),
    `  docs      ${base}/docs`,
    `  console   ${consoleLink(base, cliPrefix, startResult)}`,
  ];
  if (startResult.setUpSecret)
    lines.push(
      `  account   ${setUpAddress(base, startResult.setUpSecret)}`,
      `            open it to choose an e-mail address and a password; for another link: ${cliPrefix} accounts link`,
    );
  for (const missingFeature of missing) lines.push(`  without   ${missingFeature}`);
  if (!startResult.key) lines.push(`  keys      create one with: ${cliPrefix} keys create`);
  if (startResult.key) {
    const key = startResult.key.reveal();
    lines.push(
      `  key       ${key}`,
      `            is shown only once; create others with: ${cliPrefix} keys create`,
      '',
      'Try it:',
      '',
      `  curl -s -X POST ${base}/v1/browsers/sessions -H 'Authorization: Bearer ${key}'`,
    );
  }
  return `${lines.join('\n')}\n\n`;
}

/**
 * The token is in the fragment, which browsers never send to a server; the console removes it from the address at once.
 */
const consoleLink = (base: string, cliPrefix: string, { consoleToken }: Service['firstStartResult']): string =>
  consoleToken
    ? `${base}/console#token=${consoleToken.reveal()}\n            signs you in for ${CONSOLE_LINK_LIFETIME_HOURS} hours; for another link: ${cliPrefix} console`
    : `${base}/console   (for a link that signs you in: ${cliPrefix} console)`;

const explain = (error: unknown, step: 'start' | 'stop'): string =>
  isFault(error) ? `${error.message} (${error.code})` : `Berth could not ${step}: ${reason(error)}`;

function fail(message: string, code: number): number {
  process.stderr.write(`${message}\n`);
  return code;
}
