// Ways for a page or a client to send a byte to a host. Each way gets a page and its own host, which detects whether
// anything arrives.

export interface RouteContext {
  /** Sends a command to the page. */
  send(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** Sends a command to the browser. */
  sendBrowser(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** Calls the listener for each event of the page. */
  on(listener: (method: string, params: Readonly<Record<string, unknown>>) => void): void;
  /** `http://127.0.0.1:PORT`: the origin of the page, which is a secure context for workers and beacons. */
  readonly home: string;
  readonly host: string;
  readonly port: number;
}

export type Route = (way: RouteContext) => Promise<unknown>;

const targetUrl = ({ host, port }: RouteContext, path = '/', scheme = 'http'): string =>
  `${scheme}://${host}:${port}${path}`;

const scriptRoute =
  (source: (way: RouteContext) => string): Route =>
  way =>
    way.send('Runtime.evaluate', { expression: `{ ${source(way)} }`, userGesture: true, awaitPromise: false });

const elementRoute = (name: string, set: (way: RouteContext) => Readonly<Record<string, string>>): Route =>
  scriptRoute(
    way =>
      `const it = document.createElement('${name}'); Object.assign(it, ${JSON.stringify(set(way))}); document.head.append(it)`,
  );

/** The page's own files, which the suite serves from the same origin. */
export const SCRIPTS: Readonly<Record<string, string>> = {
  '/worker.js': 'fetch(new URL(location).searchParams.get("to"), { mode: "no-cors" })',
  '/imports.js': 'importScripts(new URL(location).searchParams.get("to"))',
  '/shared.js': 'onconnect = () => fetch(new URL(location).searchParams.get("to"), { mode: "no-cors" })',
  '/service.js':
    'oninstall = event => event.waitUntil(fetch(new URL(location).searchParams.get("to"), { mode: "no-cors" }).catch(() => {}))',
};

/** Routes by which data leaves a session that has no network policy. */
export const LEAVING_ROUTES: Readonly<Record<string, Route>> = {
  'the page moves': scriptRoute(it => `location.href = '${targetUrl(it)}'`),
  'the client moves the page': it => it.send('Page.navigate', { url: targetUrl(it) }),
  'a meta refresh': it =>
    it.send('Page.navigate', { url: `${it.home}/refresh?to=${encodeURIComponent(targetUrl(it))}` }),
  'a popup': scriptRoute(it => `open('${targetUrl(it)}', '_blank', 'noopener')`),
  'a form': scriptRoute(
    it => `const form = document.createElement('form'); Object.assign(form, { method: 'post', action: '${targetUrl(it)}' });
           document.body.append(form); form.submit()`,
  ),
  'a frame': scriptRoute(
    it => `const frame = document.createElement('iframe'); frame.src = '${targetUrl(it)}'; document.body.append(frame)`,
  ),
  'an image': scriptRoute(it => `new Image().src = '${targetUrl(it, '/i.png')}'`),
  'a script': elementRoute('script', it => ({ src: targetUrl(it, '/s.js') })),
  'a module': scriptRoute(it => `import('${targetUrl(it, '/m.js')}').catch(() => {})`),
  'a style sheet': elementRoute('link', it => ({ rel: 'stylesheet', href: targetUrl(it, '/s.css') })),
  'an image of a style': scriptRoute(it => `document.body.style.background = 'url(${targetUrl(it, '/b.png')})'`),
  'a font': scriptRoute(it => `new FontFace('x', 'url(${targetUrl(it, '/f.woff2')})').load().catch(() => {})`),
  'a video': scriptRoute(
    it => `const video = document.createElement('video'); video.src = '${targetUrl(it, '/v.mp4')}'; video.load()`,
  ),
  fetch: scriptRoute(it => `fetch('${targetUrl(it)}', { mode: 'no-cors', method: 'POST', body: 'x' }).catch(() => {})`),
  XMLHttpRequest: scriptRoute(it => `const it = new XMLHttpRequest(); it.open('GET', '${targetUrl(it)}'); it.send()`),
  'a beacon': scriptRoute(it => `navigator.sendBeacon('${targetUrl(it)}', 'x')`),
  'an event source': scriptRoute(it => `new EventSource('${targetUrl(it)}')`),
  'a WebSocket': scriptRoute(it => `new WebSocket('${targetUrl(it, '/', 'ws')}')`),
  'a WebSocket over TLS': scriptRoute(it => `new WebSocket('${targetUrl(it, '/', 'wss')}')`),
  'a request over TLS': scriptRoute(
    it => `fetch('${targetUrl(it, '/', 'https')}', { mode: 'no-cors' }).catch(() => {})`,
  ),
  'a worker': scriptRoute(it => `new Worker('/worker.js?to=${encodeURIComponent(targetUrl(it))}')`),
  "a worker's import": scriptRoute(it => `new Worker('/imports.js?to=${encodeURIComponent(targetUrl(it))}')`),
  'a shared worker': scriptRoute(it => `new SharedWorker('/shared.js?to=${encodeURIComponent(targetUrl(it))}')`),
  'a service worker': scriptRoute(
    it =>
      `navigator.serviceWorker.register('/service.js?to=${encodeURIComponent(targetUrl(it))}', { scope: '/${it.host}' }).catch(() => {})`,
  ),
  'a data: page': it =>
    it.send('Page.navigate', { url: `data:text/html,<script>location.href='${targetUrl(it)}'</script>` }),
  'a blob: page': scriptRoute(
    it =>
      `open(URL.createObjectURL(new Blob(["<script>location.href='${targetUrl(it)}'</script>"], { type: 'text/html' })))`,
  ),
  'a javascript: address': scriptRoute(it => `location.href = "javascript:void(location.href='${targetUrl(it)}')"`),
  'a download': scriptRoute(
    it => `Object.assign(document.createElement('a'), { href: '${targetUrl(it, '/x.zip')}', download: '' }).click()`,
  ),
  'a chain of redirects': it =>
    it.send('Page.navigate', {
      url: `${it.home}/go?to=${encodeURIComponent(`/go?to=${encodeURIComponent(targetUrl(it))}`)}`,
    }),
  'a prefetch': elementRoute('link', it => ({ rel: 'prefetch', href: targetUrl(it) })),
  'Network.loadNetworkResource': async it => {
    const { frameTree } = await it.send('Page.getFrameTree');
    const options = { disableCache: true, includeCredentials: false };
    return it.send('Network.loadNetworkResource', { frameId: Object(frameTree).frame.id, url: targetUrl(it), options });
  },
  'Fetch.continueRequest': async it => {
    it.on((method, params) => {
      if (method !== 'Fetch.requestPaused') return;
      const override = String(Object(params.request).url).endsWith('/swap') ? { url: targetUrl(it) } : {};
      it.send('Fetch.continueRequest', { requestId: params.requestId, ...override }).catch(() => {});
    });
    await it.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
    return it.send('Runtime.evaluate', { expression: `void fetch('/swap').catch(() => {})` });
  },
  'a context of the client': async it => {
    const { browserContextId } = await it.sendBrowser('Target.createBrowserContext');
    return it.sendBrowser('Target.createTarget', { url: targetUrl(it), browserContextId });
  },
};

/** Ways that never work in a jail. A Chromium without a jail proves that the tests are effective. */
export const STAYING_ROUTES: Readonly<Record<string, Route>> = {
  WebRTC: scriptRoute(
    it => `const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${it.host}:${it.port}' }] });
           peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer)); globalThis.peer = peer`,
  ),
  WebTransport: scriptRoute(it => `new WebTransport('${targetUrl(it, '/', 'https')}').ready.catch(() => {})`),
  'a prefetch of a name': elementRoute('link', it => ({ rel: 'dns-prefetch', href: targetUrl(it) })),
  'a connection ahead of its use': elementRoute('link', it => ({
    rel: 'preconnect',
    href: targetUrl(it, '/', 'https'),
  })),
  'a context without the proxy': async it => {
    const directProxy = { proxyServer: 'direct://', proxyBypassList: '*' };
    const { browserContextId } = await it.sendBrowser('Target.createBrowserContext', directProxy);
    return it.sendBrowser('Target.createTarget', { url: targetUrl(it), browserContextId });
  },
};
