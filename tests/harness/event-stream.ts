// A minimal reader of server-sent events: the events so far, the next one, and how the stream ended.
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { withTimeLimit } from './until.ts';

const EVENT_TIMEOUT_MS = 60_000;

export interface StreamedEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class EventStream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly #response: IncomingMessage;
  readonly #events: StreamedEvent[] = [];
  readonly #comments: string[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #end: Promise<'ended' | 'cut'>;
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.#response = response;
    response.setEncoding('utf8');
    this.#end = new Promise(resolve => {
      response.once('end', () => resolve('ended'));
      response.once('close', () => resolve('cut'));
      response.on('error', () => {}); // reported by `waitForEnd`
    });
    response.on('data', (piece: string) => this.#receive(piece));
  }

  /** Opens a stream. If the response is not a stream, rejects with its text. */
  static async open(url: string, headers: OutgoingHttpHeaders): Promise<EventStream> {
    const response = await withTimeLimit(
      `a response from ${url}`,
      new Promise<IncomingMessage>((resolve, reject) => {
        const clientRequest = request(url, { headers: { accept: 'text/event-stream', ...headers }, agent: false });
        clientRequest.once('response', resolve);
        clientRequest.on('error', reject);
        clientRequest.end();
      }),
    );
    if (!response.headers['content-type']?.startsWith('text/event-stream'))
      throw new Error(`the response is not an event stream: ${response.statusCode} ${await text(response)}`);
    return new EventStream(response);
  }

  get events(): readonly StreamedEvent[] {
    return this.#events;
  }

  get comments(): readonly string[] {
    return this.#comments;
  }

  get types(): string[] {
    return this.#events.map(({ event }) => event);
  }

  /** Resolves to the first matching event, whether it was already received or is received later. */
  waitForEvent(type: string, satisfies: (event: StreamedEvent) => boolean = () => true): Promise<StreamedEvent> {
    const look = (): StreamedEvent | undefined => this.#events.find(event => event.event === type && satisfies(event));
    return this.#until(`the event ${type}`, look);
  }

  waitForComment(): Promise<string> {
    return this.#until('a comment', () => this.#comments[0]);
  }

  waitForEnd(): Promise<'ended' | 'cut'> {
    return withTimeLimit('the stream to end', this.#end, EVENT_TIMEOUT_MS);
  }

  cut(): void {
    this.#response.destroy();
  }

  #until<T>(what: string, look: () => T | undefined): Promise<T> {
    const match = new Promise<T>(resolve => {
      const listen = (): void => {
        const seen = look();
        if (seen === undefined) return;
        this.#listeners.delete(listen);
        resolve(seen);
      };
      this.#listeners.add(listen);
      listen();
    });
    return withTimeLimit(what, match, EVENT_TIMEOUT_MS).catch((error: Error) => {
      throw new Error(`${error.message}; received so far: ${this.types.join(', ')}`, { cause: error });
    });
  }

  #receive(chunk: string): void {
    const blocks = (this.#rest + chunk).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#readBlock(block.split('\n'));
    for (const listen of [...this.#listeners]) listen();
  }

  #readBlock(lines: readonly string[]): void {
    const field = (name: string): string | undefined =>
      lines.find(line => line.startsWith(`${name}: `))?.slice(name.length + 2);
    this.#comments.push(...lines.filter(line => line.startsWith(':')));
    const data = field('data');
    if (data === undefined) return;
    this.#events.push({ id: field('id') ?? '', event: field('event') ?? '', data: JSON.parse(data) });
  }
}
