// The playground: a session, a snippet that drives the session from this browser, and the live view of the session.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { CreateSession, Session } from '../../../contract/sessions.ts';
import { call } from '../api/call.ts';
import { sessionQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, FormError } from '../ui/states.tsx';
import { isOpen, Status } from '../ui/status.tsx';
import { LiveTab } from './live-tab.tsx';
import { PlaygroundSession } from './playground-session.tsx';
import { INITIAL_FORM, requestOf } from './session-form.ts';
import { SnippetEditor } from './snippet-editor.tsx';
import { EXAMPLES } from './snippets.ts';
import { type Line, useRunner } from './use-runner.ts';

const POLL_INTERVAL_MS = 5_000;

export function PlaygroundPage({ app }: { readonly app: string }) {
  const [request, setRequest] = useState<CreateSession | undefined>(() => requestOf(INITIAL_FORM));
  const [code, setCode] = useState(EXAMPLES[0]?.code ?? '');
  const [id, setId] = useState<string>();
  const runner = useRunner();
  const client = useQueryClient();
  const { data: session } = useQuery({
    ...sessionQuery(app, id ?? ''),
    enabled: id !== undefined,
    refetchInterval: POLL_INTERVAL_MS,
  });
  const hasOpenSession = session !== undefined && isOpen(session);

  const run = useMutation({
    mutationFn: async (number: number) => {
      const runningSession = hasOpenSession ? session : await call('createSession', { app, body: request ?? {} });
      client.setQueryData(sessionQuery(app, runningSession.id).queryKey, runningSession);
      setId(runningSession.id);
      runner.run(number, { connectUrl: reachableConnectUrl(runningSession), code });
    },
    onError: (error, number) => runner.fail(number, error.message),
  });
  const release = useMutation({
    mutationFn: async () => {
      runner.stop();
      await call('updateSession', { app, params: { id: id ?? '' }, body: { status: 'REQUEST_RELEASE' } });
      await client.invalidateQueries({ queryKey: ['session', app, id] });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    run.mutate(runner.begin());
  };
  return (
    <Page
      title="Playground"
      about="Puppeteer runs in this browser and controls a session. No part of the snippet runs in the service."
      mark={session && <Status status={session.status} />}
      actions={
        hasOpenSession && (
          <Button look="danger" busy={release.isPending} onClick={() => release.mutate()}>
            Release
          </Button>
        )
      }
    >
      <div className="grid gap-5 @min-[860px]:grid-cols-2 @min-[860px]:items-start">
        <form onSubmit={submit} className="grid min-w-0 gap-5">
          {!hasOpenSession && <PlaygroundSession change={setRequest} />}
          <SnippetEditor code={code} change={setCode} />
          <div className="flex flex-wrap items-center gap-2">
            <Button
              type="submit"
              look="primary"
              icon="play"
              busy={runner.isRunning || run.isPending}
              disabled={request === undefined}
            >
              {run.isPending && !hasOpenSession ? 'Starting a browser' : runner.isRunning ? 'Running' : 'Run'}
            </Button>
            {runner.isRunning && <Button onClick={() => runner.stop()}>Stop</Button>}
            <p role="status" className="text-sm text-soft">
              {runner.endText}
            </p>
          </div>
          <FormError error={release.error} />
          <Output lines={runner.lines} />
        </form>
        <Panel
          title="Live view"
          actions={
            id !== undefined && (
              <Link
                to="/a/$app/sessions/$id"
                params={{ app, id }}
                className="text-sm text-accent underline underline-offset-2"
              >
                Open the session
              </Link>
            )
          }
        >
          {hasOpenSession && id !== undefined ? (
            <LiveTab key={id} app={app} id={id} />
          ) : (
            <EmptyState icon="play" title={id === undefined ? 'No session yet' : 'The session has ended'}>
              Run creates a session and shows its pages here.
            </EmptyState>
          )}
        </Panel>
      </div>
    </Page>
  );
}

/**
 * Uses the origin of this page, because the content security policy of the runner allows only this origin. The public
 * URL may have a different origin.
 */
function reachableConnectUrl({ connectUrl = '' }: Session): string {
  const { pathname, search } = new URL(connectUrl);
  return `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${pathname}${search}`;
}

const LEVEL_CLASSES: Readonly<Record<Line['level'], string>> = {
  ...{ log: '', info: '', debug: 'text-code-soft' },
  warn: 'font-semibold before:content-["Warning:_"]',
  error: 'font-semibold before:content-["Error:_"]',
};

const Output = ({ lines }: { readonly lines: readonly Line[] }) => (
  <Panel title="Output">
    <div role="log" aria-label="Output of the snippet" className="min-h-24 bg-code p-4 font-mono text-xs text-code-ink">
      <ol>
        {lines.map(({ id, level, text }) => (
          <li key={id} className={`break-words whitespace-pre-wrap ${LEVEL_CLASSES[level]}`}>
            {text}
          </li>
        ))}
      </ol>
    </div>
  </Panel>
);
