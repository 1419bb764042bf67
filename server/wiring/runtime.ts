// The runtime of a server, and the functions that open the parts of an installation for the server and the operator's
// commands.
import type { Config } from '../config.ts';
import { openStore } from '../engines/store/open-store.ts';
import type { Store } from '../engines/store/store.ts';
import { type Installation, readInstallation } from '../installation.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Scope } from '../kit/scope.ts';
import { noTracer, Tracer } from '../kit/trace.ts';
import { version } from '../version.ts';

export interface OpenedInstallation extends Pick<Installation, 'secret'> {
  readonly runtime: Runtime;
}

/** The runtime of a command, which records no spans. */
export function commandRuntime(
  config: Pick<Config, 'dataDir' | 'sharedDir' | 'secret'>,
  clock: Clock,
  log: Log,
): OpenedInstallation {
  const { host, secret } = readInstallation(config, clock);
  return { runtime: { clock, log, host, trace: noTracer }, secret };
}

export async function serverRuntime(config: Config, clock: Clock, log: Log, scope: Scope): Promise<OpenedInstallation> {
  const { runtime, secret } = commandRuntime(config, clock, log);
  return { runtime: { ...runtime, trace: await openTracer(config, runtime, scope) }, secret };
}

/** OpenTelemetry is loaded only if spans are exported. */
async function openTracer({ otlp }: Config, { host, clock, log }: Runtime, scope: Scope): Promise<Tracer> {
  if (!otlp) return noTracer;
  const { openOtel } = await import('../otel-trace.ts');
  return new Tracer(scope.own(openOtel({ ...otlp, version: version(), instance: host, clock, log })));
}

/** Opens the database. With `isBesideServer`, opens it for a command that may run while a server is running. */
export const openDatabase = (
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  { databaseUrl, dataDir, process }: Pick<Config, 'databaseUrl' | 'dataDir' | 'process'>,
  { isBesideServer = false } = {},
): Promise<Store> => {
  const isSupervised = process !== undefined;
  return openStore({ ...(databaseUrl ? { databaseUrl, isSupervised } : {}), dataDir, log, clock, isBesideServer });
};
