// The WebSocket to the server: says what the person does, hears what is to be shown, and comes again by itself when it breaks.
import type { FrameHead, ServerMessage, ViewerMessage } from '../../contract/live-messages.ts';

const AGAIN_FIRST_MS = 250;
const AGAIN_MOST_MS = 5_000;

export interface Hearing {
  message(message: ServerMessage): void;
  /** Resolves when it is drawn. */
  frame(head: FrameHead, jpeg: Blob): Promise<void>;
  /** How the connection is: lost for the moment, refused for good, or open. */
  connection(state: 'open' | 'lost' | 'refused'): void;
}

export class Connection {
  readonly #hearing: Hearing;
  #socket: WebSocket | undefined;
  #holder = '';
  #waitMs = AGAIN_FIRST_MS;
  #over = false;
  #everOpen = false;

  constructor(hearing: Hearing) {
    this.#hearing = hearing;
    this.#open();
  }

  say(message: ViewerMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #open(): void {
    const socket = new WebSocket(this.#address());
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    socket.addEventListener('open', () => {
      this.#everOpen = true;
      this.#waitMs = AGAIN_FIRST_MS;
      this.#hearing.connection('open');
    });
    socket.addEventListener('message', ({ data }) => this.#hear(data));
    socket.addEventListener('close', () => this.#closed());
  }

  #address(): string {
    const here = new URL(location.href);
    const address = new URL(`${here.pathname.replace(/\/$/, '')}/socket`, here);
    address.protocol = here.protocol.replace('http', 'ws');
    for (const name of ['token', 'page', 'readOnly']) {
      const value = here.searchParams.get(name);
      if (value !== null) address.searchParams.set(name, value);
    }
    if (this.#holder) address.searchParams.set('holder', this.#holder);
    return address.href;
  }

  #hear(data: unknown): void {
    if (data instanceof ArrayBuffer) return this.#frame(data);
    const message = JSON.parse(String(data)) as ServerMessage; // our own server's
    if (message.type === 'welcome') this.#holder = message.holder;
    if (message.type === 'ended') this.#over = true;
    this.#hearing.message(message);
  }

  #frame(data: ArrayBuffer): void {
    const length = new DataView(data).getUint16(0);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 2, length))) as FrameHead;
    const jpeg = new Blob([new Uint8Array(data, 2 + length)], { type: 'image/jpeg' });
    void this.#hearing
      .frame(head, jpeg)
      .catch(() => {})
      .then(() => this.say({ type: 'drawn' }));
  }

  #closed(): void {
    if (this.#over) return;
    this.#hearing.connection(this.#everOpen ? 'lost' : 'refused');
    // One that was never open is asked after once in a while too: a server that restarts refuses for a moment.
    setTimeout(() => this.#open(), this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, AGAIN_MOST_MS);
  }
}
