// A minimal live view, as a standalone program. It relays the screencast of one page from Chromium's own socket to
// viewers, and their mouse input back to the page, without a jail, recording, permissions or limits. Prints its port,
// and exits when its parent exits.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';

const PAGE = `<!doctype html><style>body{margin:0}</style><canvas id="canvas" width="1280" height="720"></canvas><script>
  const socket = new WebSocket('ws://' + location.host);
  socket.binaryType = 'blob';
  socket.onmessage = async ({ data }) => {
    const bitmap = await createImageBitmap(data);
    canvas.getContext('2d', { alpha: false }).drawImage(bitmap, 0, 0);
    bitmap.close();
  };
  for (const [heard, type] of [['pointermove', 'mouseMoved'], ['pointerdown', 'mousePressed'], ['pointerup', 'mouseReleased']])
    canvas.addEventListener(heard, ({ clientX: x, clientY: y, buttons }) => {
      const press = type === 'mouseMoved' ? {} : { button: 'left', clickCount: 1 };
      socket.send(JSON.stringify({ type, x, y, buttons, ...press }));
    });
</script>`;

const [url = '', targetId = ''] = process.argv.slice(2);
const browserSocket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0 });
await once(browserSocket, 'open');
let lastCommandId = 0;
const sendCommand = (method: string, params: object, sessionId?: string): void =>
  browserSocket.send(JSON.stringify({ id: ++lastCommandId, method, params, ...(sessionId ? { sessionId } : {}) }));

const httpServer = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(PAGE));
const webSocketServer = new WebSocketServer({ server: httpServer, perMessageDeflate: false });
let pageSessionId: string | undefined;
let newestFrame: Buffer | undefined;

browserSocket.on('message', data => {
  const { method, params, sessionId } = JSON.parse(String(data));
  if (method === 'Target.attachedToTarget') {
    pageSessionId = params.sessionId;
    sendCommand('Page.startScreencast', { format: 'jpeg', quality: 80 }, pageSessionId);
  } else if (method === 'Page.screencastFrame') {
    sendCommand('Page.screencastFrameAck', { sessionId: params.sessionId }, sessionId);
    newestFrame = Buffer.from(params.data, 'base64');
    for (const socket of webSocketServer.clients) socket.send(newestFrame);
  }
});
webSocketServer.on('connection', socket => {
  if (newestFrame) socket.send(newestFrame);
  socket.on('message', data => sendCommand('Input.dispatchMouseEvent', JSON.parse(String(data)), pageSessionId));
});
sendCommand('Target.attachToTarget', { targetId, flatten: true });

httpServer.listen(0, '127.0.0.1', () => {
  const address = httpServer.address();
  if (address && typeof address === 'object') process.send?.(address.port);
});
browserSocket.on('close', () => process.exit());
process.on('disconnect', () => process.exit());
