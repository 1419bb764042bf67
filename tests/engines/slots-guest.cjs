// A program for a box that does as it is told, with all that Node can do: the strongest attacker there is, code of one's
// own choice as the box's user. Speaks as a browser does: JSON and NUL on descriptors 3 and 4.
const { Socket } = require('node:net');

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
const towards = new Socket({ fd: 3, readable: true, writable: false });
const from = new Socket({ fd: 4, readable: false, writable: true });
globalThis.memory = {};

let unread = Buffer.alloc(0);
towards.on('data', chunk => {
  unread = Buffer.concat([unread, chunk]);
  for (let end = unread.indexOf(0); end >= 0; end = unread.indexOf(0)) {
    const text = unread.toString('utf8', 0, end);
    unread = unread.subarray(end + 1);
    if (text !== '') void answer(JSON.parse(text));
  }
});

async function answer({ id, params }) {
  const say = message => from.write(`${JSON.stringify({ id, ...message })}\0`);
  try {
    say({ result: { value: await new AsyncFunction('require', params.code)(require) } });
  } catch (error) {
    say({ error: { message: error.code ?? String(error) } });
  }
}
