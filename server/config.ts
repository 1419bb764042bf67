// The only file that reads settings from the environment. All invalid values are reported at once, by name.
import { isIP } from 'node:net';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { type Pack, parseCreditPacks } from './kit/credit-packs.ts';
import { Environment, type Variables } from './kit/environment.ts';
import { Secret } from './kit/secret.ts';

export interface Config {
  readonly listen: { readonly host: string; readonly port: number };
  /** Address at which metrics and readiness are served. If absent, they are not served. */
  readonly operatorListen?: Config['listen'];
  /** The origin that callers use, without a trailing slash. */
  readonly publicUrl: string;
  /** Address ranges of trusted reverse proxies, whose X-Forwarded-For header is used. */
  readonly trustedProxies: readonly string[];
  readonly dataDir: string;
  /**
   * The data folder that the processes of this machine share. It contains secrets and stored files, and is also the
   * `dataDir` of the first process.
   */
  readonly sharedDir: string;
  /**
   * The number of server processes on this machine. Each process is a host, and all of them share one public address.
   */
  readonly processes: number;
  /**
   * The position of this process among the server processes of this machine. Set by the supervisor if there are
   * several.
   */
  readonly process?: ProcessPosition;
  /** URL at which other hosts that use the same database reach this host. */
  readonly peerUrl: string;
  /** Set if the operator configured `peerUrl`. If absent, `peerUrl` is the address that this host listens on. */
  readonly isPeerUrlGiven?: true;
  /**
   * An address that reaches only this host. It is used in connectUrls, so that connections need not be passed on to
   * another host. Absent: the public address.
   */
  readonly hostUrl?: string;
  readonly hostLabels: Readonly<Record<string, string>>;
  /**
   * How long a host keeps its sessions without responding (`ms`, which must be the same on all hosts), and while it
   * restarts (`restartMs`).
   */
  readonly lease: { readonly ms: number; readonly restartMs: number };
  /** Absent: the embedded PostgreSQL in the data folder. */
  readonly databaseUrl?: Secret;
  readonly slots: number;
  /**
   * The number of warm browsers with the default settings. Up to the same number again is kept with recently requested
   * settings.
   */
  readonly warm: number;
  readonly isolation: 'auto' | 'slot' | 'process';
  readonly egressAllow: readonly EgressAllow[];
  /** The address of each host name that the egress proxy resolves statically. */
  readonly egressHosts: ReadonlyMap<string, string>;
  /** Path of certificate authorities (PEM) that the server's own requests trust in addition to the usual ones. */
  readonly outboundCaFile?: string;
  /** Path of a list of advertising hosts, for sessions that block them. */
  readonly adblockList?: string;
  /** Path of the operator's proxy file. */
  readonly proxyPools?: string;
  /** The engine of sessions whose create request does not name one. */
  readonly engine: 'chromium' | 'headless-shell';
  readonly chromium?: string;
  readonly headlessShell?: string;
  readonly ffmpeg?: string;
  readonly regions: readonly [string, ...string[]];
  /** Who may register: anybody, people with an invitation, or nobody. */
  readonly registration: 'open' | 'invite' | 'closed';
  readonly compat: boolean;
  /** Whether session logs contain console messages. Pages can detect that the console is observed. */
  readonly logRuntime: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Where OpenTelemetry spans are sent. Absent: no spans are recorded. */
  readonly otlp?: { readonly endpoint: string; readonly headers?: Secret };
  /**
   * The secret of the installation, which signs connect keys. Absent: generated at the first start and kept in the data
   * folder.
   */
  readonly secret?: Secret;
  /** The master key of the vault. Absent: generated at the first start and kept in the data folder. */
  readonly masterKey?: { readonly given: Secret } | { readonly command: string };
  /** How long a session without keepAlive waits for another client after the last one disconnected. */
  readonly disconnectGraceMs: number;
  /** How long adopted sessions wait for their clients to reconnect after a restart of the server. */
  readonly adoptGraceMs: number;
  /** The limits of each session. */
  readonly limits: {
    readonly memoryBytes: number;
    readonly diskBytes: number;
    readonly pids: number;
    readonly cpus: number;
  };
  /** The rate limits of each credential. */
  readonly requestsPerMinute: { readonly reads: number; readonly writes: number };
  /** The maximum total size of one session's downloads, and of its uploads. */
  readonly sessionFiles: { readonly downloadBytes: number; readonly uploadBytes: number };
  /** How long the files and the row of a session are kept after its end. */
  readonly retention: { readonly filesMs: number; readonly sessionsMs: number };
  /** The mail server. Absent: e-mails are kept for the operator to read. */
  readonly smtp?: { readonly url: Secret; readonly from: string };
  readonly credit: {
    /** In micro-credits. If all rates are 0, credit is not enforced. */
    readonly rates: { readonly browserSecond: number; readonly egressMegabyte: number };
    /** The balance of an account is low if fewer micro-credits than this are available. If 0, no balance is low. */
    readonly lowBalanceThreshold: number;
    /** The packs of credit that people can buy. Empty: nothing can be bought. */
    readonly packs: readonly Pack[];
    /** The operator's text that explains how to pay. */
    readonly paymentText: string;
  };
  /** Absent: artifacts are kept in the data folder. */
  readonly s3?: S3Config;
  /** An extension that no session has used for this many days is deleted. */
  readonly extensionDays: number;
  /**
   * Paths of the certificate and key (PEM) of a public URL with https. With them, connections from a session to the
   * public URL end at the egress proxy of the session, which serves only the connect path of that session.
   */
  readonly tls?: CertificateFiles;
  /**
   * Paths of the PEM files for TLS between hosts: the certificate and key that this host presents to other hosts, and
   * the certificate authorities that it trusts instead of the default ones.
   */
  readonly peerTls: Partial<CertificateFiles> & { readonly caFile?: string };
}

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Position of a server process among the processes of this machine. The first process has the number 1. */
export interface ProcessPosition {
  readonly number: number;
  readonly processCount: number;
}

/** A private address range that sessions may reach, with or without a port: `127.0.0.1/32:9100` or `10.0.0.0/8`. */
export interface EgressAllow {
  readonly address: string;
  readonly prefix: number;
  readonly family: 4 | 6;
  /** Absent: every port. */
  readonly port?: number;
}

export interface S3Config {
  /** Absent: Amazon's endpoint for the region. */
  readonly endpoint?: string;
  readonly bucket: string;
  readonly region: string;
  /** Absent: the AWS SDK finds credentials through its default provider chain (profile, instance role). */
  readonly keys?: { readonly accessKey: string; readonly secretKey: Secret };
  /** Whether the address of an object is `endpoint/bucket/key` rather than `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
}

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const BYTES_MAX = 1024 * GIB;
const REQUESTS_MAX = 1_000_000;
const RATE_MAX = 1_000_000_000;
const PAYMENT_TEXT_CHARACTERS_MAX = 2000;
const SECRET_CHARACTERS_MIN = 32;
const PROCESSES_MAX = 16;
const PROCESSORS_PER_PROCESS = 8;
const DEFAULT_LISTEN = '127.0.0.1:8080';
const DEFAULT_OPERATOR_LISTEN = '127.0.0.1:9464';
const DEFAULT_REGION = 'local';
const RANGE_FORMAT = 'ADDRESS[/PREFIX], for example 10.0.0.5 or 10.0.0.0/24';
const EGRESS_FORMAT = 'ADDRESS[/PREFIX][:PORT], for example 127.0.0.1/32:9100 or 10.0.0.0/8';
const HOST_FORMAT = 'NAME=ADDRESS, for example a.test=127.0.0.1';
const LABEL_FORMAT = 'NAME=VALUE, for example zone=a';
const DAY_MS = 24 * 3600_000;
const SESSION_FILES_BYTES_DEFAULT = 4 * GIB;
const SESSION_MEMORY_BYTES_DEFAULT = 2 * GIB;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
const REGISTRATION_MODES = ['open', 'invite', 'closed'] as const;
const ENGINES = ['chromium', 'headless-shell'] as const;
const ISOLATIONS = ['auto', 'slot', 'process'] as const;

/** @throws BadConfig with a message for each error. */
export function readConfig(variables: Variables): Config {
  const env = new Environment(variables);
  const listen = readListen(env, 'BERTH_LISTEN', DEFAULT_LISTEN) ?? { host: '', port: 0 };
  const operatorListen = readOperatorListen(env, listen);
  const databaseUrl = readDatabaseUrl(env);
  const secret = readSecret(env);
  const masterKey = readMasterKey(env);
  const tls = readTls(env, 'BERTH_TLS');
  const s3 = readS3(env);
  const otlp = readOtlp(env);
  const smtp = readSmtp(env);
  const outboundCaFile = readPath(env, 'BERTH_OUTBOUND_CA_FILE');
  const adblockList = readPath(env, 'BERTH_ADBLOCK_LIST');
  const proxyPools = readPath(env, 'BERTH_PROXY_POOLS');
  const chromium = readPath(env, 'BERTH_CHROMIUM');
  const headlessShell = readPath(env, 'BERTH_HEADLESS_SHELL');
  const ffmpeg = readPath(env, 'BERTH_FFMPEG');
  const hostUrl = readOrigin(env, 'BERTH_HOST_URL');
  const peerUrl = readOrigin(env, 'BERTH_PEER_URL');
  const dataDir = resolve(env.text('BERTH_DATA_DIR') ?? './data');
  const slots = env.wholeNumber('BERTH_SLOTS', defaultSlots(), 0, 1000);
  const peerTls = readPeerTls(env, listen, peerUrl);
  const config: Config = {
    listen,
    ...(operatorListen ? { operatorListen } : {}),
    publicUrl: readPublicUrl(env, listen),
    trustedProxies: readEach(env, 'BERTH_TRUSTED_PROXIES', RANGE_FORMAT, readTrustedProxy),
    dataDir,
    sharedDir: dataDir,
    processes: env.wholeNumber('BERTH_PROCESSES', defaultProcesses(), 1, PROCESSES_MAX),
    ...(peerUrl === undefined ? { peerUrl: localUrl(listen) } : { peerUrl, isPeerUrlGiven: true }),
    ...(hostUrl ? { hostUrl } : {}),
    hostLabels: Object.fromEntries(readEach(env, 'BERTH_HOST_LABELS', LABEL_FORMAT, readLabel)),
    lease: {
      ms: 1000 * env.wholeNumber('BERTH_HOST_LEASE', 12, 3, 120),
      restartMs: 1000 * env.wholeNumber('BERTH_HOST_RESTART', 60, 3, 3600),
    },
    ...(databaseUrl ? { databaseUrl } : {}),
    slots,
    warm: env.wholeNumber('BERTH_WARM', slots === 0 ? 0 : defaultWarmBrowsers(), 0, 100),
    isolation: env.oneOf('BERTH_ISOLATION', 'auto', ISOLATIONS),
    egressAllow: readEach(env, 'BERTH_EGRESS_ALLOW', EGRESS_FORMAT, readEgressAllow),
    egressHosts: new Map(readEach(env, 'BERTH_EGRESS_HOSTS', HOST_FORMAT, readEgressHost)),
    ...(outboundCaFile ? { outboundCaFile } : {}),
    ...(adblockList ? { adblockList } : {}),
    ...(proxyPools ? { proxyPools } : {}),
    engine: env.oneOf('BERTH_ENGINE', 'chromium', ENGINES),
    ...(chromium ? { chromium } : {}),
    ...(headlessShell ? { headlessShell } : {}),
    ...(ffmpeg ? { ffmpeg } : {}),
    regions: readRegions(env),
    registration: env.oneOf('BERTH_REGISTRATION', 'invite', REGISTRATION_MODES),
    compat: env.isOn('BERTH_COMPAT', 'on'),
    logRuntime: env.isOn('BERTH_LOG_RUNTIME', 'on'),
    logLevel: env.oneOf('BERTH_LOG_LEVEL', 'info', LOG_LEVELS),
    ...(secret ? { secret } : {}),
    ...(masterKey ? { masterKey } : {}),
    disconnectGraceMs: 1000 * env.wholeNumber('BERTH_DISCONNECT_GRACE', 2, 0, 3600),
    adoptGraceMs: 1000 * env.wholeNumber('BERTH_ADOPT_GRACE', 30, 0, 3600),
    limits: {
      memoryBytes: env.wholeNumber('BERTH_SESSION_MEMORY', SESSION_MEMORY_BYTES_DEFAULT, 256 * MIB, BYTES_MAX),
      diskBytes: env.wholeNumber('BERTH_SESSION_DISK', 8 * GIB, 64 * MIB, BYTES_MAX),
      pids: env.wholeNumber('BERTH_SESSION_PIDS', 2000, 1000, 100_000),
      cpus: env.wholeNumber('BERTH_SESSION_CPUS', Math.max(2, cpus().length), 1, 1024),
    },
    requestsPerMinute: {
      reads: env.wholeNumber('BERTH_READS_PER_MINUTE', 600, 1, REQUESTS_MAX),
      writes: env.wholeNumber('BERTH_WRITES_PER_MINUTE', 120, 1, REQUESTS_MAX),
    },
    sessionFiles: {
      downloadBytes: env.wholeNumber('BERTH_SESSION_DOWNLOADS', SESSION_FILES_BYTES_DEFAULT, 0, BYTES_MAX),
      uploadBytes: env.wholeNumber('BERTH_SESSION_UPLOADS', SESSION_FILES_BYTES_DEFAULT, 0, BYTES_MAX),
    },
    retention: {
      filesMs: DAY_MS * env.wholeNumber('BERTH_KEEP_FILES', 31, 0, 3650),
      sessionsMs: DAY_MS * env.wholeNumber('BERTH_KEEP_SESSIONS', 90, 0, 3650),
    },
    extensionDays: env.wholeNumber('BERTH_EXTENSION_DAYS', 90, 1, 36_500),
    credit: {
      ...readPacks(env),
      rates: {
        browserSecond: env.wholeNumber('BERTH_RATE_BROWSER_SECOND', 0, 0, RATE_MAX),
        egressMegabyte: env.wholeNumber('BERTH_RATE_EGRESS_MEGABYTE', 0, 0, RATE_MAX),
      },
      lowBalanceThreshold: env.wholeNumber('BERTH_CREDIT_LOW', 1_000_000, 0, Number.MAX_SAFE_INTEGER),
    },
    ...(smtp ? { smtp } : {}),
    ...(s3 ? { s3 } : {}),
    ...(tls ? { tls } : {}),
    peerTls,
    ...(otlp ? { otlp } : {}),
  };
  const processPosition = readProcess(env);
  env.assertValid();
  return processPosition ? configOfProcess(config, processPosition) : config;
}

const defaultSlots = (): number => Math.max(2, Math.min(40, Math.floor((totalmem() / GIB) * 2)));

/**
 * A warm browser takes about 150 MB of memory and almost no processor time. There is at most one per processor, because
 * more browsers than there are processors are rarely claimed at once.
 */
const defaultWarmBrowsers = (): number => Math.max(1, Math.min(8, cpus().length, Math.floor(totalmem() / (2 * GIB))));

const defaultProcesses = (): number => Math.max(1, Math.floor(cpus().length / PROCESSORS_PER_PROCESS));

/** The supervisor sets this variable if there are several processes. The operator does not set it. */
export const PROCESS_VARIABLE = 'BERTH_PROCESS';

function readProcess(env: Environment): ProcessPosition | undefined {
  const [, number, processCount] = /^(\d{1,2})\/(\d{1,2})$/.exec(env.text(PROCESS_VARIABLE) ?? '') ?? [];
  return number === undefined ? undefined : { number: Number(number), processCount: Number(processCount) };
}

/** Returns the data folder of a process. The first process uses the shared folder itself. */
export const processFolder = (sharedDir: string, number: number): string =>
  number === 1 ? sharedDir : join(sharedDir, 'processes', String(number));

/**
 * Returns the settings of one of several processes: its share of the slots and warm browsers, and its own addresses.
 */
function configOfProcess(config: Config, position: ProcessPosition): Config {
  const { sharedDir, slots, warm, operatorListen } = config;
  const { number, processCount } = position;
  const shareOfTotal = (amount: number): number =>
    Math.floor(amount / processCount) + (number <= amount % processCount ? 1 : 0);
  const dataDir = processFolder(sharedDir, number);
  const peerUrl = peerUrlOf(config, number) ?? `unix:${join(dataDir, 'peer.sock')}`;
  const ownConfig = {
    ...config,
    process: position,
    dataDir,
    slots: shareOfTotal(slots),
    warm: shareOfTotal(warm),
    peerUrl,
  };
  if (!operatorListen || operatorListen.port === 0) return ownConfig;
  return { ...ownConfig, operatorListen: { ...operatorListen, port: operatorListen.port + number - 1 } };
}

/**
 * Returns the configured peer URL with the number of the process added to its port. Undefined if no URL is configured,
 * because then only the processes on this machine connect to each other.
 */
function peerUrlOf({ peerUrl, isPeerUrlGiven }: Config, number: number): string | undefined {
  if (!isPeerUrlGiven) return undefined;
  const url = new URL(peerUrl);
  url.port = String(Number(url.port || (url.protocol === 'https:' ? 443 : 80)) + number);
  return url.origin;
}

function readPath(env: Environment, name: string): string | undefined {
  const path = env.text(name);
  return path === undefined ? undefined : resolve(path);
}

/** Returns the valid values of a list, and reports each invalid one. */
function readEach<T>(env: Environment, name: string, expected: string, read: (item: string) => T | undefined): T[] {
  return env.list(name).flatMap(item => {
    const value = read(item);
    if (value === undefined) env.recordInvalid(name, item, expected);
    return value === undefined ? [] : [value];
  });
}

function readListen(env: Environment, name: string, defaultAddress: string): Config['listen'] | undefined {
  const text = env.text(name) ?? defaultAddress;
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host && port <= 65535) return { host, port };
  env.recordInvalid(name, text, `HOST:PORT, for example ${defaultAddress} or [::1]:${defaultAddress.split(':')[1]}`);
  return undefined;
}

function readOperatorListen(env: Environment, listen: Config['listen']): Config['listen'] | undefined {
  const text = env.text('BERTH_OPERATOR_LISTEN');
  if (text === 'off') return undefined;
  const operatorAddress = readListen(env, 'BERTH_OPERATOR_LISTEN', DEFAULT_OPERATOR_LISTEN);
  if (
    text !== undefined &&
    operatorAddress &&
    operatorAddress.port !== 0 &&
    operatorAddress.host === listen.host &&
    operatorAddress.port === listen.port
  )
    env.recordInvalid('BERTH_OPERATOR_LISTEN', text, 'an address other than that of BERTH_LISTEN');
  return operatorAddress;
}

function readPublicUrl(env: Environment, listen: Config['listen']): string {
  return readOrigin(env, 'BERTH_PUBLIC_URL') ?? localUrl(listen);
}

function localUrl(listen: Config['listen']): string {
  const isWildcard = listen.host === '0.0.0.0' || listen.host === '::';
  const host = isWildcard ? '127.0.0.1' : isIP(listen.host) === 6 ? `[${listen.host}]` : listen.host;
  return `http://${host}:${listen.port}`;
}

function readOrigin(env: Environment, name: string): string | undefined {
  const text = env.text(name);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const hasUser = url !== undefined && url.username + url.password !== '';
  const isPlainUrl = url && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && !hasUser;
  if (isPlainUrl) return url.href.replace(/\/+$/, '');
  env.recordInvalid(
    name,
    withoutPassword(text),
    'an http or https URL without user, query or fragment, for example https://browsers.example',
  );
  return '';
}

/** Hides a URL that may contain a password. The text need not be a valid URL. */
const withoutPassword = (text: string): string => (text.includes('@') ? '***' : text);

function readLabel(text: string): readonly [string, string] | undefined {
  const match = /^([a-z0-9._/-]{1,63})=([A-Za-z0-9._/-]{0,63})$/.exec(text);
  return match?.[1] === undefined ? undefined : [match[1], match[2] ?? ''];
}

function readSmtp(env: Environment): Config['smtp'] {
  const [text, from] = [env.text('BERTH_SMTP_URL'), env.text('BERTH_SMTP_FROM')];
  if (text === undefined) return undefined;
  // The value is left out of the error message, because it may contain a password.
  if (!/^smtps?:\/\/[^/\s]+$/.test(text) || !URL.canParse(text))
    env.recordInvalid('BERTH_SMTP_URL', '***', 'smtp://USER:PASSWORD@HOST:PORT, or smtps://…');
  if (from === undefined || !/^[^\s@<>]+@[^\s@<>]+$/.test(from))
    env.recordInvalid('BERTH_SMTP_FROM', from ?? '', 'the sender address of e-mails, for example berth@example.com');
  return { url: new Secret(text), from: from ?? '' };
}

const PACKS_FORMAT =
  'a JSON array of packs such as [{"id":"p50","credits":50,"price":4500,"currency":"EUR"}], each with its own id (a-z, 0-9, _, -), whole credits, a price in the smallest unit, one currency for all, and optionally a bonus';

function readPacks(env: Environment): Pick<Config['credit'], 'packs' | 'paymentText'> {
  const text = env.text('BERTH_CREDIT_PACKS');
  const paymentText = env.text('BERTH_PAYMENT_TEXT') ?? '';
  if (paymentText.length > PAYMENT_TEXT_CHARACTERS_MAX)
    env.recordInvalid(
      'BERTH_PAYMENT_TEXT',
      `${paymentText.slice(0, 40)}…`,
      `at most ${PAYMENT_TEXT_CHARACTERS_MAX} characters`,
    );
  const packs = text === undefined ? [] : parseCreditPacks(text);
  if (packs === undefined) env.recordInvalid('BERTH_CREDIT_PACKS', text ?? '', PACKS_FORMAT);
  if (packs && packs.length > 0 && paymentText === '')
    env.recordInvalid(
      'BERTH_PAYMENT_TEXT',
      '',
      'payment instructions, such as the account to transfer to, because BERTH_CREDIT_PACKS is set',
    );
  return { packs: packs ?? [], paymentText };
}

function readDatabaseUrl(env: Environment): Secret | undefined {
  const text = env.text('DATABASE_URL');
  if (text === undefined) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text))
    env.recordInvalid('DATABASE_URL', '***', 'postgres://USER:PASSWORD@HOST:PORT/DATABASE');
  return new Secret(text);
}

function readSecret(env: Environment): Secret | undefined {
  const text = env.text('BERTH_SECRET');
  if (text === undefined) return undefined;
  if (text.length < SECRET_CHARACTERS_MIN)
    env.recordInvalid(
      'BERTH_SECRET',
      '***',
      `at least ${SECRET_CHARACTERS_MIN} characters, for example the output of \`openssl rand -hex 32\``,
    );
  return new Secret(text);
}

/** One key, or several keys separated by commas while the master key is being changed. The new key is the first one. */
const MASTER_KEYS_PATTERN = /^([0-9a-f]{64}|[a-z0-9+/_-]{43}=?)(\s*,\s*([0-9a-f]{64}|[a-z0-9+/_-]{43}=?))*$/i;

function readMasterKey(env: Environment): Config['masterKey'] {
  const keyText = env.text('BERTH_MASTER_KEY');
  const command = env.text('BERTH_MASTER_KEY_COMMAND');
  if (keyText !== undefined && command !== undefined)
    env.recordInvalid('BERTH_MASTER_KEY_COMMAND', command, 'no value, because BERTH_MASTER_KEY is set');
  if (keyText === undefined) return command === undefined ? undefined : { command };
  if (!MASTER_KEYS_PATTERN.test(keyText))
    env.recordInvalid(
      'BERTH_MASTER_KEY',
      '***',
      '64 hexadecimal digits, or 32 bytes in base64, for example the output of `openssl rand -hex 32`',
    );
  return { given: new Secret(keyText) };
}

function readTls(env: Environment, prefix: 'BERTH_TLS' | 'BERTH_TLS_PEER'): CertificateFiles | undefined {
  const [cert, key] = [`${prefix}_CERT`, `${prefix}_KEY`] as const;
  const certFile = env.text(cert);
  const keyFile = env.text(key);
  if (certFile && keyFile) return { certFile: resolve(certFile), keyFile: resolve(keyFile) };
  if (certFile) env.recordInvalid(key, '', `the key file that belongs to ${cert}`);
  if (keyFile) env.recordInvalid(cert, '', `the certificate file that belongs to ${key}`);
  return undefined;
}

/**
 * With TLS, other hosts must reach this host on a separate port, because the listener at BERTH_LISTEN does not use TLS.
 */
function readPeerTls(env: Environment, listen: Config['listen'], peerUrl: string | undefined): Config['peerTls'] {
  const certificateFiles = readTls(env, 'BERTH_TLS_PEER');
  const caFile = readPath(env, 'BERTH_TLS_PEER_CA');
  const isOtherPort = peerUrl?.startsWith('https:') && Number(new URL(peerUrl).port || HTTPS_PORT) !== listen.port;
  if (certificateFiles && !isOtherPort)
    env.recordInvalid(
      'BERTH_PEER_URL',
      peerUrl ?? '',
      'an https address of this host with a port other than that of BERTH_LISTEN',
    );
  return { ...certificateFiles, ...(caFile === undefined ? {} : { caFile }) };
}

const HTTPS_PORT = 443;

/** S3 is used if a bucket is configured. */
function readS3(env: Environment): S3Config | undefined {
  const bucket = env.text('BERTH_S3_BUCKET');
  const endpoint = env.text('BERTH_S3_ENDPOINT');
  const region = env.text('BERTH_S3_REGION') ?? 'us-east-1';
  const keys = readS3Keys(env);
  const pathStyle = env.isOn('BERTH_S3_PATH_STYLE', endpoint ? 'on' : 'off');
  if (endpoint !== undefined && !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint))
    env.recordInvalid(
      'BERTH_S3_ENDPOINT',
      withoutPassword(endpoint),
      'an http or https origin, for example https://s3.example:9000',
    );
  if (bucket === undefined) {
    if (endpoint !== undefined) env.recordInvalid('BERTH_S3_BUCKET', '', 'the name of the bucket at BERTH_S3_ENDPOINT');
    return undefined;
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    env.recordInvalid(
      'BERTH_S3_BUCKET',
      bucket,
      'a bucket name of 3 to 63 lower-case letters, digits, dots and dashes',
    );
  return {
    ...(endpoint ? { endpoint: endpoint.replace(/\/$/, '') } : {}),
    ...{ bucket, region, pathStyle },
    ...(keys ? { keys } : {}),
  };
}

function readS3Keys(env: Environment): S3Config['keys'] {
  const accessKey = env.text('BERTH_S3_ACCESS_KEY');
  const secretKey = env.text('BERTH_S3_SECRET_KEY');
  if (accessKey && secretKey) return { accessKey, secretKey: new Secret(secretKey) };
  if (accessKey) env.recordInvalid('BERTH_S3_SECRET_KEY', '', 'the secret that belongs to BERTH_S3_ACCESS_KEY');
  if (secretKey) env.recordInvalid('BERTH_S3_ACCESS_KEY', '', 'the access key that belongs to BERTH_S3_SECRET_KEY');
  return undefined;
}

/** Reads the environment variables that OpenTelemetry defines. */
function readOtlp(env: Environment): Config['otlp'] {
  const endpoint = env.text('OTEL_EXPORTER_OTLP_ENDPOINT');
  const headers = env.text('OTEL_EXPORTER_OTLP_HEADERS');
  if (endpoint === undefined) return undefined;
  if (headers !== undefined && !isPercentEncoded(headers))
    env.recordInvalid(
      'OTEL_EXPORTER_OTLP_HEADERS',
      '***',
      'name=value pairs, separated by commas and percent-encoded (% is %25)',
    );
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url && /^https?:$/.test(url.protocol))
    return { endpoint: url.href.replace(/\/+$/, ''), ...(headers ? { headers: new Secret(headers) } : {}) };
  const endpointFormat = 'an http or https URL without /v1/traces, for example http://127.0.0.1:4318';
  env.recordInvalid('OTEL_EXPORTER_OTLP_ENDPOINT', withoutPassword(endpoint), endpointFormat);
  return undefined;
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function readEgressAllow(text: string): EgressAllow | undefined {
  const match =
    /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)|([0-9a-fA-F:.]*:[0-9a-fA-F:.]*))(?:\/(\d{1,3}))?(?::(\d{1,5}))?$/.exec(text);
  const address = match?.[1] ?? match?.[2] ?? match?.[3] ?? '';
  const family = isIP(address);
  const bits = family === 6 ? 128 : 32;
  const prefix = match?.[4] === undefined ? bits : Number(match[4]);
  const port = match?.[5] === undefined ? undefined : Number(match[5]);
  if ((family !== 4 && family !== 6) || prefix > bits || (port !== undefined && (port < 1 || port > 65535)))
    return undefined;
  return { address, prefix, family, ...(port === undefined ? {} : { port }) };
}

/**
 * Refuses a range that contains all addresses, because every caller could then forge its IP address in X-Forwarded-For.
 */
function readTrustedProxy(text: string): string | undefined {
  const [, address = '', length] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 6 ? 128 : 32;
  const prefix = length === undefined ? bits : Number(length);
  return family === 0 || prefix > bits || prefix === 0 ? undefined : text;
}

function readEgressHost(text: string): [string, string] | undefined {
  const match = /^([a-zA-Z0-9.-]{1,253})=([0-9a-fA-F:.]+)$/.exec(text);
  return match?.[1] && match[2] && isIP(match[2]) !== 0 ? [match[1].toLowerCase(), match[2]] : undefined;
}

function readRegions(env: Environment): Config['regions'] {
  const [first = DEFAULT_REGION, ...others] = env.list('BERTH_REGION');
  const invalidNames = [first, ...others].filter(word => !/^[a-z0-9][a-z0-9-]{0,62}$/.test(word));
  for (const word of invalidNames)
    env.recordInvalid('BERTH_REGION', word, 'names of lower-case letters, digits and dashes');
  return [first, ...others];
}
