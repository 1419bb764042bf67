// A channel to one page, for a client that may reach only that page. The server attaches to the page through its own
// channel to the browser. That channel also receives the event that reports the closing of the page.
import { objectAt, textAt } from '../../kit/json.ts';
import { CommandSender } from './command-sender.ts';
import { SERVER_ERROR } from './messages.ts';
import type { Channel, ChannelOwner, Mux, OnResponse } from './mux.ts';

export class PageAttachment implements ChannelOwner {
  readonly #mux: Mux;
  readonly #targetId: string;
  readonly #client: ChannelOwner;
  readonly #onGone: () => void;
  readonly #commandSender: CommandSender;
  #root: Channel | undefined;
  #page: Channel | undefined;

  /** `onGone` is called when the page has been closed or Chromium has detached the channel. */
  constructor(mux: Mux, targetId: string, client: ChannelOwner, onGone: () => void) {
    this.#mux = mux;
    this.#targetId = targetId;
    this.#client = client;
    this.#onGone = onGone;
    this.#commandSender = new CommandSender(mux);
  }

  async open(beforeUse: (channelId: string) => void): Promise<Channel> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse);
    await this.#commandSender.send(this.#root, 'Target.attachToTarget', { targetId: this.#targetId, flatten: true });
    if (!this.#page) throw new Error('Chromium attached to a page without sending Target.attachedToTarget');
    return this.#page;
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /** Fails the client's pending commands with an error. Returns the id of the channel to detach. */
  close(): string | undefined {
    if (this.#page) this.#mux.drop(this.#page);
    return this.#root?.id;
  }

  handleMessage(channel: Channel, message: Buffer): void {
    const event = this.#commandSender.receive(channel, message);
    const sessionId = textAt(event?.params, 'sessionId');
    if (event?.method === 'Target.attachedToTarget' && sessionId !== undefined && !this.#page) {
      const targetId = textAt(objectAt(event.params, 'targetInfo'), 'targetId');
      if (targetId === this.#targetId) this.#page = this.#mux.open(sessionId, this.#client, undefined, targetId);
    }
    if (event?.method === 'Target.detachedFromTarget' && sessionId !== undefined && sessionId === this.#page?.id) {
      this.#mux.drop(this.#page);
      this.#onGone();
    }
  }

  fail(_channel: Channel, id: number, message: string, onResponse: OnResponse | undefined): void {
    void onResponse?.({ id, error: { code: SERVER_ERROR, message } });
  }

  batchEnd(): void {}
}
