// `berth status`: prints the current state of the service that uses this data folder, as the service reports it. The
// exit code shows whether the service is ready.
import { readConfig } from '../../server/config.ts';
import { runningServer } from '../../server/server-record.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';

/** Allows for a slow database, which the readiness check queries. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** Addresses that mean every interface, with the loopback address that the command uses instead. */
const LOOPBACK_BY_WILDCARD: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

interface Status {
  readonly running: true;
  readonly ready: boolean;
  readonly pid: number;
  readonly version: string;
  readonly url: string;
  readonly publicUrl: string;
  readonly operatorUrl: string;
  readonly sessions: { readonly running: number; readonly pending: number };
  readonly slots: number;
  readonly warm: number;
  readonly waitingCreates: number;
  readonly clients: number;
  readonly checks: readonly Check[];
}

export async function printStatus(terminal: Terminal, { json }: { json?: true }): Promise<void> {
  const config = readConfig(terminal.env);
  const server = runningServer(config.dataDir);
  if (!server) {
    if (json) printJson(terminal, { running: false, ready: false });
    throw new CommandFailed(
      EXIT.unreachable,
      `no server that uses the data folder ${config.dataDir} is running. Start the service with \`berth serve\`.`,
    );
  }
  if (!server.addresses)
    throw new CommandFailed(
      EXIT.failed,
      'the running server is an older version, which does not record its addresses. Restart it with the current version.',
    );
  const { operatorUrl, publicUrl } = server.addresses;
  if (!operatorUrl)
    throw new CommandFailed(
      EXIT.failed,
      'the server has no operator address: BERTH_OPERATOR_LISTEN is `off`. Set it to an address and restart the service.',
    );
  const report = await readStatus(reachableUrl(server.addresses.url), operatorUrl, server.pid, publicUrl);
  if (json) printJson(terminal, report);
  else terminal.print(formatStatus(report));
  const failedChecks = report.checks.filter(({ ok }) => !ok);
  if (!report.ready)
    throw new CommandFailed(EXIT.unfit, `the service is not ready: ${failedChecks.map(checkText).join('; ')}.`);
}

function reachableUrl(listenUrl: string): string {
  const { hostname, port } = new URL(listenUrl);
  return `http://${LOOPBACK_BY_WILDCARD[hostname] ?? hostname}:${port || 80}`;
}

async function readStatus(url: string, operatorUrl: string, pid: number, publicUrl: string): Promise<Status> {
  const [welcome, readiness, metrics] = await Promise.all([
    fetchText(url, '/'),
    fetchText(operatorUrl, '/readyz'),
    fetchText(operatorUrl, '/metrics'),
  ]);
  const { version } = parseJsonObject(welcome);
  const { checks, status: readyState } = parseJsonObject(readiness);
  const sum = (name: string, label = ''): number => metricIn(metrics, name, label);
  return {
    ...{ running: true, ready: readyState === 'ready', pid, version: String(version), url, publicUrl, operatorUrl },
    sessions: {
      running: sum('berth_sessions', 'status="RUNNING"'),
      pending: sum('berth_sessions', 'status="PENDING"'),
    },
    ...{ slots: sum('berth_slots'), warm: sum('berth_warm_browsers'), waitingCreates: sum('berth_waiting_creates') },
    clients: sum('berth_cdp_clients'),
    checks: Array.isArray(checks) ? checks : [],
  };
}

async function fetchText(url: string, path: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    return await (await fetch(url + path, { signal, headers: { accept: 'application/json, text/plain' } })).text();
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown';
    throw new CommandFailed(EXIT.unreachable, `the server is running, but ${url} does not respond: ${reason}.`);
  }
}

function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Returns the sum of those samples of a metric whose line contains `label`. `text` is in Prometheus' text format. */
function metricIn(text: string, name: string, label: string): number {
  const samples = text.split('\n').filter(line => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  const values = samples.filter(line => line.includes(label)).map(line => Number(line.slice(line.lastIndexOf(' '))));
  return values.reduce((sum, value) => sum + value, 0);
}

const checkText = ({ name, detail }: Check): string => `${name} ${detail}`;

function formatStatus({
  ready,
  pid,
  version,
  url,
  publicUrl,
  operatorUrl,
  sessions,
  slots,
  warm,
  waitingCreates,
  clients,
  checks,
}: Status): string {
  const lines: ReadonlyArray<readonly [string, string]> = [
    ['service', `${ready ? 'ready' : 'NOT READY'}, version ${version}, process ${pid}`],
    ['address', url === publicUrl ? url : `${url}, public ${publicUrl}`],
    ['operator', operatorUrl],
    ['sessions', `${sessions.running} running, ${sessions.pending} starting, of ${slots} slots; ${clients} clients`],
    ['warm', `${warm} browsers`],
    ['waiting', `${waitingCreates} creates`],
    ...checks.map(({ name, ok, detail }): readonly [string, string] => [name, ok ? detail : `FAILED: ${detail}`]),
  ];
  const width = Math.max(...lines.map(([name]) => name.length)) + 2;
  return lines.map(([name, value]) => `${name.padEnd(width)}${value}\n`).join('');
}
