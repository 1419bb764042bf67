// The raw CDP driver for the comparison of clients (client-cells.ts). It enables the CDP domains that stock clients
// enable, and records the events of each target. Times, durations and values that identify this run are left out.
import { CdpClient, type CdpMessage } from './cdp.ts';
import {
  BASE_READY_CONDITION,
  type Cell,
  type Driver,
  isRecorded,
  opensByScript,
  READY_CONDITION,
  STATE_SCRIPT,
  stepUrlsOf,
  TrackRecorder,
  type TracksReader,
  trackNameOf,
  UNREGISTER_WORKERS_SCRIPT,
  windowOpenScript,
} from './client-cells.ts';
import type { KnownDifferences } from './known-differences.ts';
import { eventually } from './until.ts';

type TargetNames = ReadonlyMap<string, string>;

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
  #events: CdpMessage[] = [];
  /** For each channel, a promise that resolves when its domains are enabled. */
  readonly #enableReplies = new Map<string, Promise<unknown>>();

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
    this.#events = [];
    const states = new Map<string, string>();
    const contextParams = cell.ownContext ? await this.#client.send('Target.createBrowserContext') : {};
    const base = await this.#openPage(`${this.#site}/base`, contextParams);
    await this.#client.waitForValue('the base page to activate its service worker', BASE_READY_CONDITION, base);
    const urls: string[] = [];
    for (const step of stepUrlsOf(this.#site)) {
      urls.push(...step);
      await this.#open(cell, step, base, contextParams);
      for (const url of urls)
        await this.#client.waitForValue(
          'the page of the cell to be ready',
          READY_CONDITION,
          await this.#waitForChannelAt(url),
        );
    }
    for (const url of urls)
      states.set(
        `${trackNameOf(url)} state`,
        String(await this.#client.evaluate(STATE_SCRIPT, await this.#waitForChannelAt(url))),
      );
    await this.#client.evaluate(UNREGISTER_WORKERS_SCRIPT, base);
    const targetNames = this.#targetNames();
    for (const targetId of targetNames.keys()) await this.#client.send('Target.closeTarget', { targetId });
    await eventually(
      'the targets to be gone',
      () => [...targetNames].filter(([id]) => !this.#isGone(id)),
      left => left.length === 0,
    );
    if (cell.ownContext) await this.#client.send('Target.disposeBrowserContext', contextParams);
    const events = this.#events;
    return knownDifferences => {
      const recorder = new TrackRecorder();
      for (const [track, state] of states) recorder.add(track, state);
      recordEvents(events, targetNames, knownDifferences, recorder);
      return recorder.tracks;
    };
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #receive(message: CdpMessage): void {
    if (message.method === undefined) return;
    this.#events.push(message);
    if (message.method !== 'Target.attachedToTarget') return;
    const channel = String(message.params?.sessionId);
    const isPage = infoOf(message)?.type === 'page';
    const replies = ENABLE_COMMANDS.map(method => this.#client.ask(method, {}, channel));
    if (isPage) replies.push(this.#client.ask('Page.setLifecycleEventsEnabled', { enabled: true }, channel));
    replies.push(this.#client.ask('Runtime.runIfWaitingForDebugger', {}, channel));
    this.#enableReplies.set(channel, Promise.allSettled(replies)); // the target may be closed by then
  }

  async #open(cell: Cell, urls: readonly string[], base: string, contextParams: object): Promise<void> {
    if (opensByScript(cell))
      for (const url of urls)
        await this.#client.send(
          'Runtime.evaluate',
          { expression: windowOpenScript(url, cell), userGesture: true },
          base,
        );
    else {
      const targetParams = cell.way === 'newWindow' ? { ...contextParams, newWindow: true } : contextParams;
      await Promise.all(urls.map(url => this.#openPage(url, targetParams)));
    }
  }

  /** Opens a page as stock clients do: opens an empty page, and navigates the page when all domains are enabled. */
  async #openPage(url: string, targetParams: object): Promise<string> {
    const { targetId } = await this.#client.send('Target.createTarget', { url: 'about:blank', ...targetParams });
    const channel = await this.#waitForChannel(String(targetId));
    await this.#enableReplies.get(channel);
    await this.#client.send('Page.navigate', { url }, channel);
    return channel;
  }

  async #waitForChannel(targetId: string): Promise<string> {
    const isAttachment = (one: CdpMessage): boolean =>
      one.method === 'Target.attachedToTarget' && infoOf(one)?.targetId === targetId;
    const attachment = await eventually('the page to be attached', () => this.#events.find(isAttachment));
    return String(attachment?.params?.sessionId);
  }

  async #waitForChannelAt(url: string): Promise<string> {
    const infoEvent = await eventually('the page of the cell', () =>
      this.#events.find(one => infoOf(one)?.url === url),
    );
    return this.#waitForChannel(String(infoEvent && infoOf(infoEvent)?.targetId));
  }

  #isGone(targetId: string): boolean {
    return this.#events.some(one => one.method === 'Target.targetDestroyed' && one.params?.targetId === targetId);
  }

  #targetNames(): TargetNames {
    const infos = this.#events.map(infoOf).filter(info => info !== undefined);
    const siteTargets = infos.filter(({ url }) => typeof url === 'string' && url.startsWith(`${this.#site}/`));
    return new Map(siteTargets.map(({ targetId, url }) => [String(targetId), trackNameOf(String(url))]));
  }
}

/**
 * Records one track for each combination of target, domain and request URL. Events of `Target`, and events that may arrive
 * before or after others of their domain, have a track for each event name.
 */
function recordEvents(
  events: readonly CdpMessage[],
  targetNames: TargetNames,
  knownDifferences: KnownDifferences,
  recorder: TrackRecorder,
): void {
  const targetByChannel = new Map<string, string>();
  const requestUrls = new Map<string, string>();
  for (const message of events) {
    const { method = '', params = {}, sessionId } = message;
    const info = infoOf(message);
    if (method === 'Target.attachedToTarget' && info)
      targetByChannel.set(String(params.sessionId), String(info.targetId));
    if (method === 'Network.requestWillBeSent' && isObject(params.request))
      requestUrls.set(String(params.requestId), String(params.request.url));
    const targetId = String(
      info?.targetId ?? params.targetId ?? targetByChannel.get(String(sessionId ?? params.sessionId)),
    );
    const targetName = targetNames.get(targetId);
    if (targetName === undefined || isIgnored(method, params)) continue;
    const [domain = ''] = method.split('.');
    const isOfRequest = params.requestId !== undefined && targetName !== 'worker';
    const requestUrl = isOfRequest ? requestUrls.get(String(params.requestId)) : '';
    // The start of the request is missing if the request was sent before this client was listening.
    if (requestUrl === undefined || !isRecorded(requestUrl)) continue;
    const track = `${targetName} ${domain === 'Target' || RACING_EVENTS.test(method) ? method : domain} ${requestUrl}`;
    if (knownDifferences.has(method, params)) continue;
    const cleanParams = clean(params, method, '', targetNames, knownDifferences);
    if (TARGET_INFO_EVENTS.has(method)) recorder.addChange(`${targetName} as a target`, cleanParams);
    else if (method === 'Network.policyUpdated') recorder.addChange(track, method, cleanParams);
    // The empty first document of a page may have loaded before this client was listening.
    else if (method !== 'Page.frameStoppedLoading' || recorder.tracks.has(track))
      recorder.add(track, method, cleanParams);
  }
}

function isIgnored(method: string, params: Readonly<Record<string, unknown>>): boolean {
  if (method === 'Page.lifecycleEvent') return IDLE_EVENTS.test(String(params.name));
  return method === 'Network.dataReceived' && params.dataLength === 0;
}

function infoOf({ params }: CdpMessage): Readonly<Record<string, unknown>> | undefined {
  return isObject(params?.targetInfo) ? params.targetInfo : undefined;
}

function clean(
  value: unknown,
  method: string,
  path: string,
  targetNames: TargetNames,
  knownDifferences: KnownDifferences,
): unknown {
  if (Array.isArray(value)) return value.map(one => clean(one, method, path, targetNames, knownDifferences));
  if (!isObject(value)) return value;
  const keptEntries = Object.entries(value).flatMap(([key, inner]): Array<[string, unknown]> => {
    const field = path === '' ? key : `${path}.${key}`;
    if (RUN_SPECIFIC_FIELDS.has(key) || knownDifferences.hasField(method, field, inner)) return [];
    if (TARGET_ID_FIELDS.has(key)) return [[key, targetNames.get(String(inner)) ?? 'another']];
    return [[key, clean(inner, method, field, targetNames, knownDifferences)]];
  });
  return Object.fromEntries(keptEntries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
