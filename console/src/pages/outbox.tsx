// The outbox for the operator: the e-mails that the service wrote. Shows their contents, because people need the
// contents if no mail server sends the e-mails.
import { useQuery } from '@tanstack/react-query';
import type { Mail } from '../../../contract/mails.ts';
import { isPerson } from '../api/credentials.ts';
import { mailsQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Icon } from '../ui/icon.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago, TimeText } from '../ui/time.tsx';

const TITLE = 'Outbox';

export function OutboxPage() {
  if (!isPerson())
    return (
      <Page title={TITLE}>
        <Panel>
          <EmptyState icon="outbox" title="Sign in as a person to read the outbox">
            The outbox contains links that sign people in, so a token is not enough. On the machine,{' '}
            <code className="font-mono text-sm">berth outbox</code> prints it.
          </EmptyState>
        </Panel>
      </Page>
    );
  return <Mails />;
}

function Mails() {
  const { data, error, refetch, isFetching } = useQuery({ ...mailsQuery, refetchOnWindowFocus: false });
  return (
    <Page
      title={TITLE}
      about="E-mails to people in the last 31 days. Once an e-mail has been sent, its text is deleted."
      actions={
        <Button busy={isFetching} onClick={() => void refetch()}>
          Refresh
        </Button>
      }
    >
      <p className="mb-4 flex gap-3 rounded-lg border border-warn/40 bg-warn-soft px-4 py-3 text-sm">
        <span className="mt-0.5 text-warn">
          <Icon name="warning" />
        </span>
        <span>
          <strong className="font-semibold">Codes and links here sign people in.</strong> Give each one to its recipient
          only, over a channel that you trust. Opening this page is recorded in the audit log.
          {data && !data.hasMailServer && (
            <>
              {' '}
              No mail server is configured, so nothing is sent: set{' '}
              <code className="font-mono text-xs">BERTH_SMTP_URL</code>.
            </>
          )}
        </span>
      </p>
      <ListPanel
        contentLabel="the outbox"
        items={data?.data}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="outbox" title="No e-mails">
            Invitations and sign-in codes appear here.
          </EmptyState>
        }
      >
        {mail => <MailRow key={mail.id} mail={mail} />}
      </ListPanel>
    </Page>
  );
}

const MailRow = ({ mail }: { readonly mail: Mail }) => {
  const link = /https?:\/\/\S+/.exec(mail.text)?.[0];
  return (
    <li className="px-4 py-3">
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <p className="min-w-0 font-medium break-words">{mail.to}</p>
        <p className="min-w-0 grow text-sm break-words text-soft">{mail.subject}</p>
        <p className="text-xs text-soft">
          <Ago time={mail.createdAt} />
        </p>
      </div>
      <p className="mt-0.5 text-xs text-soft">
        <State mail={mail} />
      </p>
      {mail.text !== '' && (
        <details className="mt-2 text-sm">
          <summary className="text-accent">Show the text</summary>
          <div className="mt-2 flex items-start gap-2 rounded-md bg-sunk px-3 py-2">
            <p className="min-w-0 grow break-words whitespace-pre-wrap">{mail.text}</p>
            {link && <CopyButton text={link} label={`Copy the link for ${mail.to}`} />}
          </div>
        </details>
      )}
    </li>
  );
};

const State = ({ mail: { sentAt, failure, nextAttemptAt } }: { readonly mail: Mail }) =>
  sentAt ? (
    <>
      Sent <TimeText time={sentAt} />
    </>
  ) : (
    <>
      {failure === undefined ? 'Not sent' : <span className="text-bad">Failed: {failure}</span>}
      {nextAttemptAt && (
        <>
          , next try <TimeText time={nextAttemptAt} />
        </>
      )}
    </>
  );
