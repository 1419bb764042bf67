// The WebSocket to the server: sends the viewer's input, receives frames and state, and reconnects automatically.
import type { FrameHead, ServerMessage, ViewerMessage } from '../../contract/live-messages.ts';

const RETRY_MIN_MS = 250;
/** Short, because a person who has control in a hand-off must reconnect within seconds when the service is back. */
const RETRY_MAX_MS = 2_000;

export interface ConnectionListener {
  onMessage(message: ServerMessage): void;
  /** Resolves when the frame has been drawn. */
  onFrame(head: FrameHead, jpeg: Blob): Promise<void>;
  /** `lost`: the connection is being restored. `refused`: no attempt to connect has succeeded yet. */
  onStateChange(state: 'open' | 'lost' | 'refused'): void;
}

export class Connection {
  readonly #listener: ConnectionListener;
  #socket: WebSocket | undefined;
  #holder = '';
  #retryDelayMs = RETRY_MIN_MS;
  #hasEnded = false;
  #hasOpened = false;

  constructor(listener: ConnectionListener) {
    this.#listener = listener;
    this.#open();
  }

  send(message: ViewerMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #open(): void {
    const socket = new WebSocket(this.#address());
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    socket.addEventListener('open', () => {
      this.#hasOpened = true;
      this.#retryDelayMs = RETRY_MIN_MS;
      this.#listener.onStateChange('open');
    });
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', () => this.#onClosed());
  }

  #address(): string {
    const pageUrl = new URL(location.href);
    const address = new URL(`${pageUrl.pathname.replace(/\/$/, '')}/socket`, pageUrl);
    address.protocol = pageUrl.protocol.replace('http', 'ws');
    for (const name of ['token', 'page', 'readOnly']) {
      const value = pageUrl.searchParams.get(name);
      if (value !== null) address.searchParams.set(name, value);
    }
    if (this.#holder) address.searchParams.set('holder', this.#holder);
    return address.href;
  }

  #receive(data: unknown): void {
    if (data instanceof ArrayBuffer) return this.#receiveFrame(data);
    const message = JSON.parse(String(data)) as ServerMessage; // Not validated, because our own server sent it.
    if (message.type === 'welcome') this.#holder = message.holder;
    if (message.type === 'ended') this.#hasEnded = true;
    this.#listener.onMessage(message);
  }

  #receiveFrame(data: ArrayBuffer): void {
    const headLength = new DataView(data).getUint16(0);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 2, headLength))) as FrameHead;
    const jpeg = new Blob([new Uint8Array(data, 2 + headLength)], { type: 'image/jpeg' });
    void this.#listener
      .onFrame(head, jpeg)
      .catch(() => {})
      .then(() => this.send({ type: 'drawn' }));
  }

  #onClosed(): void {
    if (this.#hasEnded) return;
    this.#listener.onStateChange(this.#hasOpened ? 'lost' : 'refused');
    // Also retries if the connection has never been open: a restarting server refuses connections for a moment.
    setTimeout(() => this.#open(), this.#retryDelayMs);
    this.#retryDelayMs = Math.min(this.#retryDelayMs * 2, RETRY_MAX_MS);
  }
}
