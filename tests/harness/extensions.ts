// Small extensions (manifest version 3) as archives, each with a service worker and a content script that communicate.
import { type ZipEntry, zip } from './zip.ts';

const json = (name: string, value: object): ZipEntry => ({ name, bytes: JSON.stringify(value) });

/** On every page, the content script sends a message to the worker and writes the response into `<html data-NAME>`. */
export const messagingExtension = (
  name: string,
  manifestFields: object = {},
  files: readonly ZipEntry[] = [],
): Buffer =>
  zip([
    json('manifest.json', {
      manifest_version: 3,
      name,
      version: '1.0.1',
      permissions: ['storage'],
      host_permissions: ['<all_urls>'],
      background: { service_worker: 'js/worker.js' },
      content_scripts: [{ matches: ['<all_urls>'], js: ['js/content.js'], run_at: 'document_start' }],
      ...manifestFields,
    }),
    { name: 'js/', mode: 0o040755 },
    {
      name: 'js/worker.js',
      bytes: `chrome.runtime.onMessage.addListener((asked, sender, answer) => {
        const work = globalThis[asked.call]?.(...(asked.with ?? []));
        Promise.resolve(work ?? 'worker of ${name} hears ' + asked).then(answer, error => answer(String(error)));
        return true;
      });
      globalThis.get = url => fetch(url).then(got => got.text());
      globalThis.direct = url => new Promise(done =>
        chrome.proxy.settings.set({ value: { mode: 'direct' } }, done)).then(() => get(url));`,
    },
    {
      name: 'js/content.js',
      // A worker that was just loaded may not be listening yet.
      bytes: `const ask = () => chrome.runtime.sendMessage('${name}').then(
          said => { document.documentElement.dataset.${name} = said; },
          () => setTimeout(ask, 50));
        ask();
        addEventListener('message', ({ data }) => {
          if (data.to === '${name}')
            chrome.runtime.sendMessage(data.asked).then(answer => postMessage({ from: '${name}', answer }));
        });`,
    },
    ...files,
  ]);

/**
 * The extension that `messagingExtension` builds, with an additional rule that blocks every request to /refused.
 * Chromium writes its own index of the rules into the folder of the unpacked extension.
 */
export const blockingExtension = (name: string): Buffer =>
  messagingExtension(
    name,
    {
      permissions: ['storage', 'declarativeNetRequest'],
      declarative_net_request: { rule_resources: [{ id: 'one', enabled: true, path: 'rules.json' }] },
    },
    [{ name: 'rules.json', bytes: JSON.stringify([RULE]) }],
  );

const RULE = {
  id: 1,
  action: { type: 'block' },
  condition: { urlFilter: '/refused', resourceTypes: ['xmlhttprequest'] },
};
