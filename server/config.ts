// The only reader of the environment. Each bad value is refused by name; the rest of the server gets this object.
import { isIP } from 'node:net';
import { cpus, totalmem } from 'node:os';
import { resolve } from 'node:path';
import { Secret } from './kit/secret.ts';

export interface Config {
  readonly listen: { readonly host: string; readonly port: number };
  /** Origin that callers use, without a trailing slash. */
  readonly publicUrl: string;
  /** Address ranges of proxies in front: they say in X-Forwarded-For for whom they ask. */
  readonly trustedProxies: readonly string[];
  readonly dataDir: string;
  /** Absent: the embedded PostgreSQL in the data folder. */
  readonly databaseUrl?: Secret;
  readonly slots: number;
  /** Started browsers that wait for an empty create; as many again may wait with settings asked for lately. */
  readonly warm: number;
  readonly isolation: 'auto' | 'slot' | 'process';
  readonly egressAllow: readonly EgressAllow[];
  /** Static names for the egress proxy: name -> address. */
  readonly egressHosts: ReadonlyMap<string, string>;
  /** Hosts of advertisements, for sessions that block them: a file. */
  readonly adblockList?: string;
  /** The operator's proxies, by country: a file. */
  readonly proxyPools?: string;
  readonly chromium?: string;
  readonly ffmpeg?: string;
  readonly regions: readonly [string, ...string[]];
  readonly compat: boolean;
  /** Whether logs of sessions have the console: pages can find out that it is listened to. */
  readonly logRuntime: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Where spans are sent. Absent: there are none. */
  readonly otlp?: { readonly endpoint: string; readonly headers?: Secret };
  /** Absent: generated into the data folder. */
  readonly secret?: Secret;
  /** After the last client left, how long a session without keepAlive waits for another. */
  readonly disconnectGraceMs: number;
  /** After a restart, how long sessions wait for their clients. */
  readonly adoptGraceMs: number;
  readonly limits: {
    readonly memoryBytes: number;
    readonly diskBytes: number;
    readonly pids: number;
    readonly cpus: number;
  };
  /** Bytes that the files of one session may have together, each way. */
  readonly sessionFiles: { readonly downloadBytes: number; readonly uploadBytes: number };
  /** After a session's end. */
  readonly kept: { readonly filesMs: number; readonly sessionsMs: number };
  /** Absent: artifacts are kept in the data folder. */
  readonly s3?: S3Config;
  /** An extension that no session names for so many days is deleted. */
  readonly extensionDays: number;
  /** Certificate and key (PEM files) for the session's own connect address, where the public URL is https. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

/** `127.0.0.1/32:9100` or `10.0.0.0/8`: a range that sessions may reach although it is private. */
export interface EgressAllow {
  readonly address: string;
  readonly prefix: number;
  readonly family: 4 | 6;
  /** Absent: every port. */
  readonly port?: number;
}

export interface S3Config {
  /** Absent: Amazon's own, by region. */
  readonly endpoint?: string;
  readonly bucket: string;
  readonly region: string;
  /** Absent: found as every AWS client finds them (profile, instance role). */
  readonly keys?: { readonly accessKey: string; readonly secretKey: Secret };
  /** `endpoint/bucket/key` rather than `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
}

export class BadConfig extends Error {
  constructor(name: string, value: string, expected: string) {
    super(`${name} is ${JSON.stringify(value)}; expected ${expected}.`);
    this.name = 'BadConfig';
  }
}

const GIB = 1024 ** 3;
const DAY_MS = 24 * 3600_000;
const SESSION_FILES_BYTES = 4 * GIB;
const MEMORY_PER_SESSION_BYTES = 2 * GIB;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
const ISOLATIONS = ['auto', 'slot', 'process'] as const;

type Environment = Readonly<Record<string, string | undefined>>;

export function readConfig(env: Environment): Config {
  const value = (name: string): string | undefined => (env[name]?.trim() ? env[name].trim() : undefined);
  const listen = readListen(value('BERTH_LISTEN') ?? '127.0.0.1:8080');
  const databaseUrl = value('DATABASE_URL');
  const chromium = value('BERTH_CHROMIUM');
  const ffmpeg = value('BERTH_FFMPEG');
  const adblockList = value('BERTH_ADBLOCK_LIST');
  const proxyPools = value('BERTH_PROXY_POOLS');
  const secret = readSecret(value('BERTH_SECRET'));
  const tls = readTls(value('BERTH_TLS_CERT'), value('BERTH_TLS_KEY'));
  const s3 = readS3(value);
  const otlp = readOtlp(value('OTEL_EXPORTER_OTLP_ENDPOINT'), value('OTEL_EXPORTER_OTLP_HEADERS'));
  return {
    listen,
    publicUrl: readPublicUrl(value('BERTH_PUBLIC_URL'), listen),
    trustedProxies: list(value('BERTH_TRUSTED_PROXIES')).map(readTrustedProxy),
    dataDir: resolve(value('BERTH_DATA_DIR') ?? './data'),
    ...(databaseUrl ? { databaseUrl: readDatabaseUrl(databaseUrl) } : {}),
    slots: whole('BERTH_SLOTS', value('BERTH_SLOTS'), defaultSlots(), 0, 1000),
    warm: whole('BERTH_WARM', value('BERTH_WARM'), defaultWarm(), 0, 100),
    isolation: oneOf('BERTH_ISOLATION', value('BERTH_ISOLATION') ?? 'auto', ISOLATIONS),
    egressAllow: list(value('BERTH_EGRESS_ALLOW')).map(readEgressAllow),
    egressHosts: new Map(list(value('BERTH_EGRESS_HOSTS')).map(readEgressHost)),
    ...(adblockList ? { adblockList: resolve(adblockList) } : {}),
    ...(proxyPools ? { proxyPools: resolve(proxyPools) } : {}),
    ...(chromium ? { chromium: resolve(chromium) } : {}),
    ...(ffmpeg ? { ffmpeg: resolve(ffmpeg) } : {}),
    regions: readRegions(value('BERTH_REGION') ?? 'local'),
    compat: onOff('BERTH_COMPAT', value('BERTH_COMPAT') ?? 'on'),
    logRuntime: onOff('BERTH_LOG_RUNTIME', value('BERTH_LOG_RUNTIME') ?? 'on'),
    logLevel: oneOf('BERTH_LOG_LEVEL', value('BERTH_LOG_LEVEL') ?? 'info', LOG_LEVELS),
    ...(secret ? { secret } : {}),
    disconnectGraceMs: 1000 * whole('BERTH_DISCONNECT_GRACE', value('BERTH_DISCONNECT_GRACE'), 2, 0, 3600),
    adoptGraceMs: 1000 * whole('BERTH_ADOPT_GRACE', value('BERTH_ADOPT_GRACE'), 30, 0, 3600),
    limits: {
      memoryBytes: whole(
        'BERTH_SESSION_MEMORY',
        value('BERTH_SESSION_MEMORY'),
        MEMORY_PER_SESSION_BYTES,
        256 * 1024 ** 2,
        1024 * GIB,
      ),
      diskBytes: whole('BERTH_SESSION_DISK', value('BERTH_SESSION_DISK'), 8 * GIB, 64 * 1024 ** 2, 1024 * GIB),
      pids: whole('BERTH_SESSION_PIDS', value('BERTH_SESSION_PIDS'), 2000, 1000, 100_000),
      cpus: whole('BERTH_SESSION_CPUS', value('BERTH_SESSION_CPUS'), Math.max(2, cpus().length), 1, 1024),
    },
    sessionFiles: {
      downloadBytes: bytes('BERTH_SESSION_DOWNLOADS', value('BERTH_SESSION_DOWNLOADS')),
      uploadBytes: bytes('BERTH_SESSION_UPLOADS', value('BERTH_SESSION_UPLOADS')),
    },
    kept: {
      filesMs: DAY_MS * whole('BERTH_KEEP_FILES', value('BERTH_KEEP_FILES'), 31, 0, 3650),
      sessionsMs: DAY_MS * whole('BERTH_KEEP_SESSIONS', value('BERTH_KEEP_SESSIONS'), 90, 0, 3650),
    },
    extensionDays: whole('BERTH_EXTENSION_DAYS', value('BERTH_EXTENSION_DAYS'), 90, 1, 36_500),
    ...(s3 ? { s3 } : {}),
    ...(tls ? { tls } : {}),
    ...(otlp ? { otlp } : {}),
  };
}

const bytes = (name: string, text: string | undefined): number => whole(name, text, SESSION_FILES_BYTES, 0, 1024 * GIB);

const defaultSlots = (): number => Math.max(2, Math.min(40, Math.floor((totalmem() / GIB) * 2)));

/** A waiting browser takes about 150 MB and next to no time; more than one a core are seldom claimed at once. */
const defaultWarm = (): number => Math.max(1, Math.min(8, cpus().length, Math.floor(totalmem() / (2 * GIB))));

const list = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '');

function whole(name: string, text: string | undefined, fallback: number, least: number, most: number): number {
  if (text === undefined) return fallback;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < least || number > most)
    throw new BadConfig(name, text, `a whole number from ${least} to ${most}`);
  return number;
}

function oneOf<const Word extends string>(name: string, text: string, words: readonly Word[]): Word {
  const found = words.find(word => word === text);
  if (found === undefined) throw new BadConfig(name, text, `one of ${words.join(', ')}`);
  return found;
}

const onOff = (name: string, text: string): boolean => oneOf(name, text, ['on', 'off']) === 'on';

function readListen(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (!host || !(port <= 65535))
    throw new BadConfig('BERTH_LISTEN', text, 'HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080');
  return { host, port };
}

function readPublicUrl(text: string | undefined, listen: { host: string; port: number }): string {
  if (text === undefined) {
    const wildcard = listen.host === '0.0.0.0' || listen.host === '::';
    const host = wildcard ? '127.0.0.1' : isIP(listen.host) === 6 ? `[${listen.host}]` : listen.host;
    return `http://${host}:${listen.port}`;
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === '';
  if (!plain)
    throw new BadConfig('BERTH_PUBLIC_URL', text, 'an http or https URL, for example https://browsers.example');
  return url.href.replace(/\/+$/, '');
}

function readDatabaseUrl(text: string): Secret {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text))
    throw new BadConfig('DATABASE_URL', '***', 'postgres://USER:PASSWORD@HOST:PORT/DATABASE');
  return new Secret(text);
}

function readSecret(text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  if (text.length < 32)
    throw new BadConfig('BERTH_SECRET', '***', 'at least 32 characters, for example `openssl rand -hex 32`');
  return new Secret(text);
}

function readTls(
  certFile: string | undefined,
  keyFile: string | undefined,
): { certFile: string; keyFile: string } | undefined {
  if (certFile && keyFile) return { certFile: resolve(certFile), keyFile: resolve(keyFile) };
  if (certFile) throw new BadConfig('BERTH_TLS_KEY', '', 'the key file that belongs to BERTH_TLS_CERT');
  if (keyFile) throw new BadConfig('BERTH_TLS_CERT', '', 'the certificate file that belongs to BERTH_TLS_KEY');
  return undefined;
}

/** A bucket's name turns it on. */
function readS3(value: (name: string) => string | undefined): S3Config | undefined {
  const bucket = value('BERTH_S3_BUCKET');
  const endpoint = value('BERTH_S3_ENDPOINT');
  const region = value('BERTH_S3_REGION') ?? 'us-east-1';
  const keys = readS3Keys(value('BERTH_S3_ACCESS_KEY'), value('BERTH_S3_SECRET_KEY'));
  const pathStyle = onOff('BERTH_S3_PATH_STYLE', value('BERTH_S3_PATH_STYLE') ?? (endpoint ? 'on' : 'off'));
  if (endpoint !== undefined && !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint))
    throw new BadConfig('BERTH_S3_ENDPOINT', endpoint, 'an http or https origin, for example https://s3.example:9000');
  if (bucket === undefined) {
    if (endpoint === undefined) return undefined;
    throw new BadConfig('BERTH_S3_BUCKET', '', 'the name of the bucket at BERTH_S3_ENDPOINT');
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw new BadConfig('BERTH_S3_BUCKET', bucket, 'a bucket: 3 to 63 lower-case letters, digits, dots, dashes');
  return {
    ...(endpoint ? { endpoint: endpoint.replace(/\/$/, '') } : {}),
    ...{ bucket, region, pathStyle },
    ...(keys ? { keys } : {}),
  };
}

function readS3Keys(accessKey: string | undefined, secretKey: string | undefined): S3Config['keys'] {
  if (accessKey && secretKey) return { accessKey, secretKey: new Secret(secretKey) };
  if (accessKey) throw new BadConfig('BERTH_S3_SECRET_KEY', '', 'the secret that belongs to BERTH_S3_ACCESS_KEY');
  if (secretKey) throw new BadConfig('BERTH_S3_ACCESS_KEY', '', 'the access key that belongs to BERTH_S3_SECRET_KEY');
  return undefined;
}

/** The names that every OpenTelemetry collector's guide gives. */
function readOtlp(endpoint: string | undefined, headers: string | undefined): Config['otlp'] {
  if (endpoint === undefined) return undefined;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new BadConfig(
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      endpoint,
      'an http or https URL without /v1/traces, for example http://127.0.0.1:4318',
    );
  return { endpoint: url.href.replace(/\/+$/, ''), ...(headers ? { headers: new Secret(headers) } : {}) };
}

function readEgressAllow(text: string): EgressAllow {
  const match =
    /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)|([0-9a-fA-F:.]*:[0-9a-fA-F:.]*))(?:\/(\d{1,3}))?(?::(\d{1,5}))?$/.exec(text);
  const address = match?.[1] ?? match?.[2] ?? match?.[3] ?? '';
  const family = isIP(address);
  const bits = family === 6 ? 128 : 32;
  const prefix = match?.[4] === undefined ? bits : Number(match[4]);
  const port = match?.[5] === undefined ? undefined : Number(match[5]);
  if ((family !== 4 && family !== 6) || prefix > bits || (port !== undefined && (port < 1 || port > 65535)))
    throw new BadConfig(
      'BERTH_EGRESS_ALLOW',
      text,
      'ADDRESS[/PREFIX][:PORT], for example 127.0.0.1/32:9100 or 10.0.0.0/8',
    );
  return { address, prefix, family, ...(port === undefined ? {} : { port }) };
}

/** A range of everybody would let every caller choose its own address. */
function readTrustedProxy(text: string): string {
  const [, address = '', length] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 6 ? 128 : 32;
  const prefix = length === undefined ? bits : Number(length);
  if (family === 0 || prefix > bits || prefix === 0)
    throw new BadConfig('BERTH_TRUSTED_PROXIES', text, 'ADDRESS[/PREFIX], for example 10.0.0.5 or 10.0.0.0/24');
  return text;
}

function readEgressHost(text: string): [string, string] {
  const match = /^([a-zA-Z0-9.-]{1,253})=([0-9a-fA-F:.]+)$/.exec(text);
  if (!match?.[1] || !match[2] || isIP(match[2]) === 0)
    throw new BadConfig('BERTH_EGRESS_HOSTS', text, 'NAME=ADDRESS, for example a.test=127.0.0.1');
  return [match[1].toLowerCase(), match[2]];
}

function readRegions(text: string): readonly [string, ...string[]] {
  const [first, ...others] = list(text);
  if (!first || ![first, ...others].every(word => /^[a-z0-9][a-z0-9-]{0,62}$/.test(word)))
    throw new BadConfig(
      'BERTH_REGION',
      text,
      'one or more names of lower-case letters, digits and dashes, separated by commas',
    );
  return [first, ...others];
}
