// Ways for a page or a client to send a byte to a host. Each way gets a page and its own host, which detects whether
// anything arrives.

export interface Way {
  /** Sends a command to the page. */
  send(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** Sends a command to the browser. */
  sendBrowser(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** Calls the listener for each event of the page. */
  on(heard: (method: string, params: Readonly<Record<string, unknown>>) => void): void;
  /** `http://127.0.0.1:PORT`: the origin of the page, which is a secure context for workers and beacons. */
  readonly home: string;
  readonly host: string;
  readonly port: number;
}

export type Route = (way: Way) => Promise<unknown>;

const at = ({ host, port }: Way, path = '/', scheme = 'http'): string => `${scheme}://${host}:${port}${path}`;

const inPage =
  (source: (way: Way) => string): Route =>
  way =>
    way.send('Runtime.evaluate', { expression: `{ ${source(way)} }`, userGesture: true, awaitPromise: false });

const element = (name: string, set: (way: Way) => Readonly<Record<string, string>>): Route =>
  inPage(
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

/** Ways that work in a session without a network policy. */
export const LEAVING: Readonly<Record<string, Route>> = {
  'the page moves': inPage(it => `location.href = '${at(it)}'`),
  'the client moves the page': it => it.send('Page.navigate', { url: at(it) }),
  'a meta refresh': it => it.send('Page.navigate', { url: `${it.home}/refresh?to=${encodeURIComponent(at(it))}` }),
  'a popup': inPage(it => `open('${at(it)}', '_blank', 'noopener')`),
  'a form': inPage(
    it => `const form = document.createElement('form'); Object.assign(form, { method: 'post', action: '${at(it)}' });
           document.body.append(form); form.submit()`,
  ),
  'a frame': inPage(
    it => `const frame = document.createElement('iframe'); frame.src = '${at(it)}'; document.body.append(frame)`,
  ),
  'an image': inPage(it => `new Image().src = '${at(it, '/i.png')}'`),
  'a script': element('script', it => ({ src: at(it, '/s.js') })),
  'a module': inPage(it => `import('${at(it, '/m.js')}').catch(() => {})`),
  'a style sheet': element('link', it => ({ rel: 'stylesheet', href: at(it, '/s.css') })),
  'an image of a style': inPage(it => `document.body.style.background = 'url(${at(it, '/b.png')})'`),
  'a font': inPage(it => `new FontFace('x', 'url(${at(it, '/f.woff2')})').load().catch(() => {})`),
  'a video': inPage(
    it => `const video = document.createElement('video'); video.src = '${at(it, '/v.mp4')}'; video.load()`,
  ),
  fetch: inPage(it => `fetch('${at(it)}', { mode: 'no-cors', method: 'POST', body: 'x' }).catch(() => {})`),
  XMLHttpRequest: inPage(it => `const it = new XMLHttpRequest(); it.open('GET', '${at(it)}'); it.send()`),
  'a beacon': inPage(it => `navigator.sendBeacon('${at(it)}', 'x')`),
  'an event source': inPage(it => `new EventSource('${at(it)}')`),
  'a WebSocket': inPage(it => `new WebSocket('${at(it, '/', 'ws')}')`),
  'a WebSocket over TLS': inPage(it => `new WebSocket('${at(it, '/', 'wss')}')`),
  'a request over TLS': inPage(it => `fetch('${at(it, '/', 'https')}', { mode: 'no-cors' }).catch(() => {})`),
  'a worker': inPage(it => `new Worker('/worker.js?to=${encodeURIComponent(at(it))}')`),
  "a worker's import": inPage(it => `new Worker('/imports.js?to=${encodeURIComponent(at(it))}')`),
  'a shared worker': inPage(it => `new SharedWorker('/shared.js?to=${encodeURIComponent(at(it))}')`),
  'a service worker': inPage(
    it =>
      `navigator.serviceWorker.register('/service.js?to=${encodeURIComponent(at(it))}', { scope: '/${it.host}' }).catch(() => {})`,
  ),
  'a data: page': it => it.send('Page.navigate', { url: `data:text/html,<script>location.href='${at(it)}'</script>` }),
  'a blob: page': inPage(
    it => `open(URL.createObjectURL(new Blob(["<script>location.href='${at(it)}'</script>"], { type: 'text/html' })))`,
  ),
  'a javascript: address': inPage(it => `location.href = "javascript:void(location.href='${at(it)}')"`),
  'a download': inPage(
    it => `Object.assign(document.createElement('a'), { href: '${at(it, '/x.zip')}', download: '' }).click()`,
  ),
  'a chain of redirects': it =>
    it.send('Page.navigate', {
      url: `${it.home}/go?to=${encodeURIComponent(`/go?to=${encodeURIComponent(at(it))}`)}`,
    }),
  'a prefetch': element('link', it => ({ rel: 'prefetch', href: at(it) })),
  'Network.loadNetworkResource': async it => {
    const { frameTree } = await it.send('Page.getFrameTree');
    const options = { disableCache: true, includeCredentials: false };
    return it.send('Network.loadNetworkResource', { frameId: Object(frameTree).frame.id, url: at(it), options });
  },
  'Fetch.continueRequest': async it => {
    it.on((method, params) => {
      if (method !== 'Fetch.requestPaused') return;
      const elsewhere = String(Object(params.request).url).endsWith('/swap') ? { url: at(it) } : {};
      it.send('Fetch.continueRequest', { requestId: params.requestId, ...elsewhere }).catch(() => {});
    });
    await it.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
    return it.send('Runtime.evaluate', { expression: `void fetch('/swap').catch(() => {})` });
  },
  'a context of the client': async it => {
    const { browserContextId } = await it.sendBrowser('Target.createBrowserContext');
    return it.sendBrowser('Target.createTarget', { url: at(it), browserContextId });
  },
};

/** Ways that never work in a jail. A Chromium without a jail proves that the tests are effective. */
export const STAYING: Readonly<Record<string, Route>> = {
  WebRTC: inPage(
    it => `const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${it.host}:${it.port}' }] });
           peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer)); globalThis.peer = peer`,
  ),
  WebTransport: inPage(it => `new WebTransport('${at(it, '/', 'https')}').ready.catch(() => {})`),
  'a prefetch of a name': element('link', it => ({ rel: 'dns-prefetch', href: at(it) })),
  'a connection ahead of its use': element('link', it => ({ rel: 'preconnect', href: at(it, '/', 'https') })),
  'a context without the proxy': async it => {
    const direct = { proxyServer: 'direct://', proxyBypassList: '*' };
    const { browserContextId } = await it.sendBrowser('Target.createBrowserContext', direct);
    return it.sendBrowser('Target.createTarget', { url: at(it), browserContextId });
  },
};
