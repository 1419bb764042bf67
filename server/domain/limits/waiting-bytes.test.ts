import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BytesWatch, WaitingBytes } from './waiting-bytes.ts';

class Client {
  bytes = 0;
  closedFor: string | undefined;
  readonly #watch: BytesWatch;

  constructor(all: WaitingBytes, application: string, session: string) {
    this.#watch = all.watch(
      { application, session },
      {
        bytes: () => this.bytes,
        close: bound => {
          this.closedFor = bound;
        },
      },
    );
  }

  holds(bytes: number): this {
    this.bytes = bytes;
    this.#watch.note();
    return this;
  }

  leave(): void {
    this.#watch.close();
  }
}

describe('WaitingBytes', () => {
  const bounds = { session: 10, application: 15, process: 20 };
  const exceededBoundsOf = (...clients: Client[]): Array<string | undefined> =>
    clients.map(({ closedFor }) => closedFor);

  it('closes the client with the most unread bytes if the session exceeds its limit', () => {
    const all = new WaitingBytes(bounds);
    const [small, large, other] = [new Client(all, 'a', '1'), new Client(all, 'a', '1'), new Client(all, 'a', '2')];
    other.holds(5);
    large.holds(7);
    small.holds(4);
    assert.deepEqual(exceededBoundsOf(small, large, other), [undefined, 'session', undefined]);
    small.holds(10);
    assert.equal(small.closedFor, undefined);
  });

  it('closes the client with the most unread bytes if the application or the process exceeds its limit', () => {
    const all = new WaitingBytes(bounds);
    const [one, two, three] = [new Client(all, 'a', '1'), new Client(all, 'a', '2'), new Client(all, 'b', '3')];
    three.holds(9);
    one.holds(8);
    two.holds(8);
    assert.deepEqual(exceededBoundsOf(one, two, three), ['application', undefined, undefined]);
    new Client(all, 'c', '4').holds(4);
    assert.deepEqual(exceededBoundsOf(two, three), [undefined, 'process']);
  });

  it('recounts the unread bytes of all clients before it closes a client', () => {
    const all = new WaitingBytes(bounds);
    const [one, two] = [new Client(all, 'a', '1').holds(8), new Client(all, 'a', '1')];
    one.bytes = 0; // The receiver has read all bytes.
    two.holds(8);
    assert.deepEqual(exceededBoundsOf(one, two), [undefined, undefined]);
  });

  it('does not count the bytes of a client that has disconnected', () => {
    const all = new WaitingBytes(bounds);
    const one = new Client(all, 'a', '1').holds(8);
    one.leave();
    one.holds(8);
    const two = new Client(all, 'a', '1').holds(8);
    assert.equal(two.closedFor, undefined);
  });
});
