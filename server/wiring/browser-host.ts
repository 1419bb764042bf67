// The wiring of a session's browser: its box, Chromium in it, and its egress proxy.
import type { BrowserHost } from '../domain/sessions/browser-host.ts';
import { Browser } from '../engines/browser/browser.ts';
import type { CdpEntry } from '../entry/cdp/upgrade.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { openLaunch } from './launch.ts';
import { openSessionEgress } from './session-egress.ts';

export function openBrowserHost(runtime: Runtime, foundation: Foundation, cdp: CdpEntry): BrowserHost {
  const { log, trace } = runtime;
  return {
    slots: foundation.slots,
    ...openLaunch(runtime, foundation),
    ...openSessionEgress(runtime, foundation.config, foundation.outboundEndpoints, cdp),
    connectBrowser: (box, ms, signal) =>
      trace.runInSpan('browser.meet', () => Browser.connect(box, log.with({ box: box.session }), ms, signal)),
    adoptBrowser: (box, signal) => Browser.adopt(box, log.with({ box: box.session }), signal),
  };
}
