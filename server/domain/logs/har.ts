// Converts the network and page entries of a log into a HAR file, in pieces: each request is written when it is
// complete, and the pages at the end.

import type { LogEntry } from './entry.ts';
import { type HarEntry, type Hop, harEntry, startMsOf } from './har-entry.ts';
import { objectAt, textAt } from './values.ts';

/**
 * A request that has ended is written only after this many further entries, because events with the headers that it
 * sent can arrive slightly after its end.
 */
const SETTLING_ENTRIES = 200;
/** The number of unfinished requests that are kept at once. If there are more, the oldest are written unfinished. */
const OPEN_REQUESTS_MAX = 5_000;

interface Chain {
  readonly hops: Hop[];
  readonly sentExtras: LogEntry[];
  readonly receivedExtras: LogEntry[];
  endedAtEntry: number | undefined;
}

interface PageLoad {
  readonly id: string;
  startedMs: number;
  title: string;
  loadMs: number | undefined;
}

export async function* harOf(entries: AsyncIterable<LogEntry>, version: string): AsyncGenerator<string, void> {
  const assembly = new HarAssembly();
  const creator = { name: 'Berth', version };
  yield `{"log":{"version":"1.2","creator":${JSON.stringify(creator)},"entries":[`;
  let separator = '';
  const serialize = (finishedEntries: readonly HarEntry[]): string => {
    const text = finishedEntries.map(entry => JSON.stringify(entry)).join(',\n');
    const textWithSeparator = text === '' ? '' : separator + text;
    if (text !== '') separator = ',\n';
    return textWithSeparator;
  };
  for await (const entry of entries) {
    const text = serialize(assembly.take(entry));
    if (text !== '') yield text;
  }
  yield serialize(assembly.finishAll());
  yield `],"pages":${JSON.stringify(assembly.pages)}}}`;
}

class HarAssembly {
  readonly #chains = new Map<string, Chain>();
  readonly #loads = new Map<string, PageLoad>();
  /** The id of the main frame of each page, by page number. */
  readonly #mainFrames = new Map<number, string>();
  /** The current load of each page, by page number. */
  readonly #currentLoads = new Map<number, PageLoad>();
  #entryCount = 0;

  /** Adds the next entry. Returns the requests that are now complete. */
  take(entry: LogEntry): HarEntry[] {
    this.#entryCount++;
    if (entry.kind === 'page') this.#addPageEntry(entry);
    else if (entry.kind === 'network') this.#addNetworkEntry(entry);
    return this.#takeSettled();
  }

  /** Returns all requests that have not been returned yet, including unfinished requests. */
  finishAll(): HarEntry[] {
    return [...this.#chains.keys()].flatMap(id => this.#finish(id));
  }

  get pages(): readonly HarEntry[] {
    return [...this.#loads.values()].map(({ id, startedMs, title, loadMs }) => ({
      startedDateTime: new Date(startedMs).toISOString(),
      id,
      title,
      pageTimings: { onContentLoad: -1, onLoad: loadMs ?? -1 },
    }));
  }

  #addPageEntry({ method, page, params, loaderId, at }: LogEntry): void {
    if (page === undefined || loaderId === undefined) return;
    if (method === 'Page.frameNavigated') {
      const frame = objectAt(params, 'frame');
      if (textAt(frame, 'parentId') !== undefined) return;
      this.#mainFrames.set(page, textAt(frame, 'id') ?? '');
      this.#loadOf(page, loaderId, at).title = textAt(frame, 'url') ?? '';
    } else if (method === 'Page.lifecycleEvent') {
      const load = this.#loads.get(loaderId);
      if (load) load.loadMs = Math.max(0, Math.round(1000 * (at - load.startedMs)) / 1000);
    }
  }

  #addNetworkEntry(entry: LogEntry): void {
    const id = textAt(entry.params, 'requestId');
    if (id === undefined) return;
    const chain = this.#chainOf(id);
    const lastHop = chain.hops.at(-1);
    switch (entry.method) {
      case 'Network.requestWillBeSent':
        return this.#onSent(chain, entry);
      case 'Network.webSocketCreated':
        return void chain.hops.push(this.#newHop(entry, true));
      case 'Network.webSocketWillSendHandshakeRequest':
        if (lastHop)
          lastHop.sent = {
            ...lastHop.sent,
            ...entry.params,
            request: { ...objectAt(entry.params, 'request'), url: textAt(lastHop.sent, 'url') ?? '' },
          };
        return;
      case 'Network.requestWillBeSentExtraInfo':
        return void chain.sentExtras.push(entry);
      case 'Network.responseReceivedExtraInfo':
        return void chain.receivedExtras.push(entry);
      case 'Network.requestServedFromCache':
        if (lastHop) lastHop.isFromMemory = true;
        return;
      case 'Network.responseReceived':
      case 'Network.webSocketHandshakeResponseReceived':
        if (lastHop) lastHop.received = objectAt(entry.params, 'response');
        if (lastHop) lastHop.hasExtra = entry.params.hasExtraInfo === true;
        return;
      case 'Network.loadingFinished':
      case 'Network.webSocketClosed':
        if (lastHop) lastHop.finished = entry.params;
        chain.endedAtEntry = this.#entryCount;
        return;
      case 'Network.loadingFailed':
        if (lastHop) lastHop.failed = entry.params;
        chain.endedAtEntry = this.#entryCount;
        return;
      case 'Network.webSocketFrameError':
        if (lastHop) lastHop.failed = { ...entry.params, errorText: textAt(entry.params, 'errorMessage') ?? '' };
        return;
    }
  }

  /**
   * Handles a sent request. After a redirect, the next request has the same id. The script of a worker is reported
   * twice, by its page and by the worker; the second report is ignored.
   */
  #onSent(chain: Chain, entry: LogEntry): void {
    const redirect = objectAt(entry.params, 'redirectResponse');
    const lastHop = chain.hops.at(-1);
    if (lastHop && !redirect) return;
    if (lastHop && redirect) {
      lastHop.received = redirect;
      lastHop.hasExtra = entry.params.redirectHasExtraInfo === true;
      const { timestamp } = entry.params;
      lastHop.finished = timestamp === undefined ? {} : { timestamp };
    }
    chain.hops.push(this.#newHop(entry, false));
  }

  #newHop(entry: LogEntry, isSocket: boolean): Hop {
    const { at, params } = entry;
    return {
      at,
      pageRef: this.#pageRef(entry),
      isSocket,
      sent: params,
      received: undefined,
      hasExtra: false,
      sentExtra: undefined,
      receivedExtra: undefined,
      isFromMemory: false,
      finished: undefined,
      failed: undefined,
    };
  }

  #chainOf(id: string): Chain {
    const knownChain = this.#chains.get(id);
    if (knownChain) return knownChain;
    const chain: Chain = { hops: [], sentExtras: [], receivedExtras: [], endedAtEntry: undefined };
    this.#chains.set(id, chain);
    return chain;
  }

  /**
   * Returns the id of the page load that a request belongs to. The request for the main frame's document starts a new
   * load.
   */
  #pageRef({ page, params, frameId, loaderId, at }: LogEntry): string | undefined {
    if (page === undefined) return undefined;
    const knownLoad = loaderId === undefined ? undefined : this.#loads.get(loaderId);
    if (knownLoad) return knownLoad.id;
    const isDocument = params.type === 'Document' && loaderId !== undefined && params.requestId === loaderId;
    const isMain = frameId !== undefined && (this.#mainFrames.get(page) ?? frameId) === frameId;
    if (!isDocument || !isMain) return this.#currentLoads.get(page)?.id;
    this.#mainFrames.set(page, frameId);
    const load = this.#loadOf(page, loaderId, at);
    load.startedMs = startMsOf({ ...EMPTY_HOP, at, sent: params });
    load.title = textAt(objectAt(params, 'request'), 'url') ?? '';
    return load.id;
  }

  #loadOf(page: number, loaderId: string, at: number): PageLoad {
    const existingLoad = this.#loads.get(loaderId);
    const load = existingLoad ?? { id: `page_${this.#loads.size + 1}`, startedMs: at, title: '', loadMs: undefined };
    this.#loads.set(loaderId, load);
    this.#currentLoads.set(page, load);
    return load;
  }

  #takeSettled(): HarEntry[] {
    const settledEntries: HarEntry[] = [];
    for (const [id, { endedAtEntry }] of this.#chains) {
      const isSettled = endedAtEntry !== undefined && this.#entryCount - endedAtEntry > SETTLING_ENTRIES;
      // The map contains the requests in the order in which they started. The first request that is not settled ends
      // the loop, unless too many requests are kept.
      if (!isSettled && this.#chains.size <= OPEN_REQUESTS_MAX) break;
      settledEntries.push(...this.#finish(id));
    }
    return settledEntries;
  }

  #finish(id: string): HarEntry[] {
    const chain = this.#chains.get(id);
    this.#chains.delete(id);
    if (!chain) return [];
    let extraIndex = 0;
    const { hops, sentExtras, receivedExtras } = chain;
    for (const hop of hops) {
      const isLastWithoutResponse = hop === hops.at(-1) && !hop.received;
      if (!hop.hasExtra && !isLastWithoutResponse) continue;
      hop.sentExtra = sentExtras[extraIndex]?.params;
      hop.receivedExtra = receivedExtras[extraIndex]?.params;
      extraIndex++;
    }
    return hops.map(harEntry);
  }
}

const EMPTY_HOP: Omit<Hop, 'at' | 'sent'> = {
  pageRef: undefined,
  isSocket: false,
  received: undefined,
  hasExtra: false,
  sentExtra: undefined,
  receivedExtra: undefined,
  isFromMemory: false,
  finished: undefined,
  failed: undefined,
};
