// The raw CDP driver for the comparison of clients (client-cells.ts). It enables the CDP domains that stock clients
// enable, and records the events of each target. Values that identify this run, times and durations are left out.
import { CdpClient, type CdpMessage } from './cdp.ts';
import {
  BASE_READY,
  type Cell,
  type Driver,
  isRecorded,
  openExpression,
  opensByScript,
  READY,
  STATE,
  stepsOf,
  TrackRecorder,
  type TracksReader,
  trackNameOf,
  UNREGISTER_WORKERS,
} from './client-cells.ts';
import type { KnownDifferences } from './known-differences.ts';
import { eventually } from './until.ts';

type Names = ReadonlyMap<string, string>;

const ENABLE_COMMANDS = ['Page.enable', 'Runtime.enable', 'Network.enable'] as const;
const RUN_SPECIFIC_FIELDS: ReadonlySet<string> = new Set(
  'timestamp wallTime timing connectTiming responseTime encodedDataLength connectionId connectionReused uniqueId scriptId id executionContextId loaderId requestId sessionId browserContextId headersText date Date'.split(
    ' ',
  ),
);
/** The ids in these fields are recorded as the names of the targets. */
const TARGET_ID_FIELDS: ReadonlySet<string> = new Set(
  'targetId openerId frameId openerFrameId parentFrameId parentId openerid'.split(' '),
);
/** Repeats of these events are ignored, because a query by another client causes them. */
const TARGET_INFO_EVENTS: ReadonlySet<string> = new Set(['Target.targetCreated', 'Target.targetInfoChanged']);
/** These events race with the other events of their domain. */
const RACING_EVENTS = /ExtraInfo$|^Network\.policyUpdated$/;
/** The time at which a page becomes idle varies. */
const IDLE_EVENTS = /^network(Almost)?Idle$/;

export class RawDriver implements Driver {
  readonly #client: CdpClient;
  readonly #site: string;
  #heard: CdpMessage[] = [];
  /** For each channel, a promise that resolves when its domains are enabled. */
  readonly #enabled = new Map<string, Promise<unknown>>();

  private constructor(client: CdpClient, site: string) {
    this.#client = client;
    this.#site = site;
  }

  static async open(url: string, site: string): Promise<Driver> {
    const client = await CdpClient.connect(url);
    const driver = new RawDriver(client, site);
    client.onMessage(message => driver.#receive(message));
    await client.send('Target.setDiscoverTargets', { discover: true });
    await client.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
    return driver;
  }

  async run(cell: Cell): Promise<TracksReader> {
    this.#heard = [];
    const states = new Map<string, string>();
    const own = cell.ownContext ? await this.#client.send('Target.createBrowserContext') : {};
    const base = await this.#go(`${this.#site}/base`, own);
    await this.#client.waitForValue('the base page to activate its service worker', BASE_READY, base);
    const urls: string[] = [];
    for (const step of stepsOf(this.#site)) {
      urls.push(...step);
      await this.#open(cell, step, base, own);
      for (const url of urls)
        await this.#client.waitForValue('the page of the cell to be ready', READY, await this.#channelAt(url));
    }
    for (const url of urls)
      states.set(`${trackNameOf(url)} state`, String(await this.#client.evaluate(STATE, await this.#channelAt(url))));
    await this.#client.evaluate(UNREGISTER_WORKERS, base);
    const names = this.#names();
    for (const targetId of names.keys()) await this.#client.send('Target.closeTarget', { targetId });
    await eventually(
      'the targets to be gone',
      () => [...names].filter(([id]) => !this.#isGone(id)),
      left => left.length === 0,
    );
    if (cell.ownContext) await this.#client.send('Target.disposeBrowserContext', own);
    const heard = this.#heard;
    return known => {
      const notes = new TrackRecorder();
      for (const [track, state] of states) notes.add(track, state);
      noteAll(heard, names, known, notes);
      return notes.tracks;
    };
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #receive(message: CdpMessage): void {
    if (message.method === undefined) return;
    this.#heard.push(message);
    if (message.method !== 'Target.attachedToTarget') return;
    const session = String(message.params?.sessionId);
    const isPage = infoOf(message)?.type === 'page';
    const replies = ENABLE_COMMANDS.map(method => this.#client.ask(method, {}, session));
    if (isPage) replies.push(this.#client.ask('Page.setLifecycleEventsEnabled', { enabled: true }, session));
    replies.push(this.#client.ask('Runtime.runIfWaitingForDebugger', {}, session));
    this.#enabled.set(session, Promise.allSettled(replies)); // the target may be closed by then
  }

  async #open(cell: Cell, urls: readonly string[], base: string, own: object): Promise<void> {
    if (opensByScript(cell))
      for (const url of urls)
        await this.#client.send('Runtime.evaluate', { expression: openExpression(url, cell), userGesture: true }, base);
    else {
      const targetParams = cell.way === 'newWindow' ? { ...own, newWindow: true } : own;
      await Promise.all(urls.map(url => this.#go(url, targetParams)));
    }
  }

  /** Opens a page as stock clients do: opens an empty page, and navigates the page when all domains are enabled. */
  async #go(url: string, targetParams: object): Promise<string> {
    const { targetId } = await this.#client.send('Target.createTarget', { url: 'about:blank', ...targetParams });
    const session = await this.#channelOf(String(targetId));
    await this.#enabled.get(session);
    await this.#client.send('Page.navigate', { url }, session);
    return session;
  }

  async #channelOf(targetId: string): Promise<string> {
    const isAttachment = (one: CdpMessage): boolean =>
      one.method === 'Target.attachedToTarget' && infoOf(one)?.targetId === targetId;
    const attached = await eventually('the page to be attached', () => this.#heard.find(isAttachment));
    return String(attached?.params?.sessionId);
  }

  async #channelAt(url: string): Promise<string> {
    const infoEvent = await eventually('the page of the cell', () => this.#heard.find(one => infoOf(one)?.url === url));
    return this.#channelOf(String(infoEvent && infoOf(infoEvent)?.targetId));
  }

  #isGone(targetId: string): boolean {
    return this.#heard.some(one => one.method === 'Target.targetDestroyed' && one.params?.targetId === targetId);
  }

  #names(): Names {
    const infos = this.#heard.map(infoOf).filter(info => info !== undefined);
    const ours = infos.filter(({ url }) => typeof url === 'string' && url.startsWith(`${this.#site}/`));
    return new Map(ours.map(({ targetId, url }) => [String(targetId), trackNameOf(String(url))]));
  }
}

/** Records one track for each domain of each target, for each request, and for each kind of browser event. */
function noteAll(heard: readonly CdpMessage[], names: Names, known: KnownDifferences, notes: TrackRecorder): void {
  const sessions = new Map<string, string>();
  const requests = new Map<string, string>();
  for (const message of heard) {
    const { method = '', params = {}, sessionId } = message;
    const info = infoOf(message);
    if (method === 'Target.attachedToTarget' && info) sessions.set(String(params.sessionId), String(info.targetId));
    if (method === 'Network.requestWillBeSent' && isObject(params.request))
      requests.set(String(params.requestId), String(params.request.url));
    const target = String(info?.targetId ?? params.targetId ?? sessions.get(String(sessionId ?? params.sessionId)));
    const page = names.get(target);
    if (page === undefined || isIgnored(method, params)) continue;
    const [domain = ''] = method.split('.');
    const isOfRequest = params.requestId !== undefined && page !== 'worker';
    const request = isOfRequest ? requests.get(String(params.requestId)) : '';
    // The start of the request is missing if the request was sent before this client was listening.
    if (request === undefined || !isRecorded(request)) continue;
    const track = `${page} ${domain === 'Target' || RACING_EVENTS.test(method) ? method : domain} ${request}`;
    if (known.has(method, params)) continue;
    const seen = clean(params, method, '', names, known);
    if (TARGET_INFO_EVENTS.has(method)) notes.addChange(`${page} as a target`, seen);
    else if (method === 'Network.policyUpdated') notes.addChange(track, method, seen);
    // The empty first document of a page may have loaded before this client was listening.
    else if (method !== 'Page.frameStoppedLoading' || notes.tracks.has(track)) notes.add(track, method, seen);
  }
}

function isIgnored(method: string, params: Readonly<Record<string, unknown>>): boolean {
  if (method === 'Page.lifecycleEvent') return IDLE_EVENTS.test(String(params.name));
  return method === 'Network.dataReceived' && params.dataLength === 0;
}

function infoOf({ params }: CdpMessage): Readonly<Record<string, unknown>> | undefined {
  return isObject(params?.targetInfo) ? params.targetInfo : undefined;
}

function clean(value: unknown, method: string, path: string, names: Names, known: KnownDifferences): unknown {
  if (Array.isArray(value)) return value.map(one => clean(one, method, path, names, known));
  if (!isObject(value)) return value;
  const kept = Object.entries(value).flatMap(([key, inner]): Array<[string, unknown]> => {
    const field = path === '' ? key : `${path}.${key}`;
    if (RUN_SPECIFIC_FIELDS.has(key) || known.hasField(method, field, inner)) return [];
    if (TARGET_ID_FIELDS.has(key)) return [[key, names.get(String(inner)) ?? 'another']];
    return [[key, clean(inner, method, field, names, known)]];
  });
  return Object.fromEntries(kept.sort(([one], [other]) => (one < other ? -1 : 1)));
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
