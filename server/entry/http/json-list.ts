// Serializes a long list as JSON while it is being sent, in several turns of the event loop.
import { Readable } from 'node:stream';
import { Pace } from '../../kit/pace.ts';

const PIECE_CHARS = 64 * 1024;

export const jsonList = (items: readonly unknown[]): Readable => Readable.from(pieces(items), { objectMode: false });

async function* pieces(items: readonly unknown[]): AsyncGenerator<string, void> {
  const pace = new Pace();
  let text = '[';
  for (const [index, item] of items.entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(item)}`;
    if (text.length > PIECE_CHARS) {
      yield text;
      text = '';
    }
    if (pace.isDue) await pace.rest();
  }
  yield `${text}]`;
}
