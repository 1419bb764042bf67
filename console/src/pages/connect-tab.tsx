// How to connect a client: the connect address and example code. The address contains a secret, which is initially
// hidden.
import { useState } from 'react';
import type { Session } from '../../../contract/sessions.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { EmptyState } from '../ui/states.tsx';

export function ConnectTab({ session }: { readonly session: Session }) {
  const [isKeyShown, setIsKeyShown] = useState(false);
  const { connectUrl } = session;
  if (!connectUrl)
    return (
      <EmptyState icon="keys" title="No connect address">
        Your access token does not permit connecting to sessions.
      </EmptyState>
    );
  const address = isKeyShown ? connectUrl : connectUrl.replace(/(signingKey=).*/, '$1…');
  return (
    <div className="grid gap-5 p-4">
      <section>
        <div className="mb-2 flex items-end justify-between gap-3">
          <div>
            <h2 className="text-sm font-semibold">Connect address</h2>
            <p className="text-sm text-soft">
              Anyone who has this address can control the browser. It is valid for one hour. Programs should get it by
              reading the session with their own agent key.
            </p>
          </div>
          <Button onClick={() => setIsKeyShown(!isKeyShown)} aria-pressed={isKeyShown}>
            {isKeyShown ? 'Hide the key' : 'Show the key'}
          </Button>
        </div>
        <CodeBlock code={address} copyText={connectUrl} label="the connect address" />
      </section>
      {SNIPPETS.map(([name, codeFor]) => (
        <section key={name}>
          <h2 className="mb-2 text-sm font-semibold">{name}</h2>
          <CodeBlock code={codeFor(address)} copyText={codeFor(connectUrl)} label={`the code for ${name}`} />
        </section>
      ))}
    </div>
  );
}

const SNIPPETS: ReadonlyArray<readonly [string, (address: string) => string]> = [
  [
    'Playwright',
    address =>
      `const browser = await chromium.connectOverCDP('${address}');\nconst page = browser.contexts()[0].pages()[0];`,
  ],
  [
    'Puppeteer',
    address =>
      `const browser = await puppeteer.connect({\n  browserWSEndpoint: '${address}',\n  defaultViewport: null,\n});`,
  ],
  ['browser-use', address => `session = BrowserSession(cdp_url="${address}")`],
];
