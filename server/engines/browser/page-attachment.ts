// A channel on one page for a client that is to have nothing else. It hangs on a channel to the browser that is ours alone:
// when the page goes we hear of it there, and everything ends with it.
import { objectAt, textAt } from '../../kit/json.ts';
import { Asker } from './asker.ts';
import { SERVER_ERROR } from './messages.ts';
import type { Channel, ChannelOwner, Mux, OnAnswer } from './mux.ts';

export class PageAttachment implements ChannelOwner {
  readonly #mux: Mux;
  readonly #targetId: string;
  readonly #client: ChannelOwner;
  readonly #gone: () => void;
  readonly #asker: Asker;
  #root: Channel | undefined;
  #page: Channel | undefined;

  /** `gone`: the page went, or Chromium took the channel away. */
  constructor(mux: Mux, targetId: string, client: ChannelOwner, gone: () => void) {
    this.#mux = mux;
    this.#targetId = targetId;
    this.#client = client;
    this.#gone = gone;
    this.#asker = new Asker(mux);
  }

  async open(beforeUse: (channelId: string) => void): Promise<Channel> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse);
    await this.#asker.send(this.#root, 'Target.attachToTarget', { targetId: this.#targetId, flatten: true });
    if (!this.#page) throw new Error('Chromium attached to a page without saying so');
    return this.#page;
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /** What the client still waits for is answered. Gives the channel that is to be detached. */
  close(): string | undefined {
    if (this.#page) this.#mux.drop(this.#page);
    return this.#root?.id;
  }

  incoming(channel: Channel, message: Buffer): void {
    const event = this.#asker.event(channel, message);
    const sessionId = textAt(event?.params, 'sessionId');
    if (event?.method === 'Target.attachedToTarget' && sessionId !== undefined && !this.#page) {
      const targetId = textAt(objectAt(event.params, 'targetInfo'), 'targetId');
      if (targetId === this.#targetId) this.#page = this.#mux.open(sessionId, this.#client, undefined, targetId);
    }
    if (event?.method === 'Target.detachedFromTarget' && sessionId !== undefined && sessionId === this.#page?.id) {
      this.#mux.drop(this.#page);
      this.#gone();
    }
  }

  fail(_channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void {
    void onAnswer?.({ id, error: { code: SERVER_ERROR, message } });
  }

  rest(): void {}
}
