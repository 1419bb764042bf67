// The navigation: the application, the pages of the application, and the pages of the service.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { isOffered } from '../api/call.ts';
import { signOut } from '../api/credentials.ts';
import { useInbox, waitingCountOf } from '../api/live-inbox.ts';
import { accountQuery, applicationsQuery } from '../api/queries.ts';
import { IconButton } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { OUTBOX_PAGE, PAGES, SERVICE_PAGES } from './places.ts';
import { ThemeToggle } from './theme-toggle.tsx';
import { WaitingMark } from './waiting-mark.tsx';

const ENTRY_CLASS =
  'flex h-10 md:h-7 items-center gap-2.5 rounded-md px-2.5 text-base md:text-sm text-soft transition-colors hover:bg-sunk hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-accent';

export function Navigation({
  app,
  onNavigate,
}: {
  readonly app: string | undefined;
  readonly onNavigate?: () => void;
}) {
  const inbox = useInbox();
  const isOperator = useQuery(accountQuery).data?.isOperator === true && isOffered('listMails');
  return (
    <div className="flex h-full flex-col gap-5">
      {app !== undefined && <ApplicationChoice app={app} />}
      {app !== undefined && (
        <ul className="grid gap-px">
          {PAGES.filter(({ needs }) => isOffered(needs)).map(({ to, icon, name }) => (
            <li key={to}>
              <Link
                to={to}
                params={{ app }}
                className={ENTRY_CLASS}
                activeOptions={{ exact: to === '/a/$app', includeSearch: false }}
                {...(onNavigate ? { onClick: onNavigate } : {})}
              >
                <Icon name={icon} />
                {name}
                {to === '/a/$app/inbox' && <WaitingMark count={waitingCountOf(inbox, app)} />}
              </Link>
            </li>
          ))}
        </ul>
      )}
      <div>
        <h2 className="mb-1 px-2.5 text-xs font-medium text-faint">Service</h2>
        <ul className="grid gap-px">
          {[...SERVICE_PAGES, ...(isOperator ? [OUTBOX_PAGE] : [])].map(({ to, icon, name }) => (
            <li key={to}>
              <Link to={to} className={ENTRY_CLASS} {...(onNavigate ? { onClick: onNavigate } : {})}>
                <Icon name={icon} />
                {name}
              </Link>
            </li>
          ))}
          <li>
            <a href="/docs" className={ENTRY_CLASS}>
              <Icon name="docs" />
              Docs
            </a>
          </li>
        </ul>
      </div>
      <div className="mt-auto flex items-center justify-between border-t border-line pt-3">
        <span className="px-2.5 text-xs text-faint">Berth {BERTH_VERSION}</span>
        <span className="flex">
          <ThemeToggle />
          <IconButton label="Sign out" icon="exit" onClick={() => signOut()} />
        </span>
      </div>
    </div>
  );
}

function ApplicationChoice({ app }: { readonly app: string }) {
  const { data } = useQuery(applicationsQuery);
  const inbox = useInbox();
  const navigate = useNavigate();
  return (
    <div className="relative">
      <label htmlFor="application" className="sr-only">
        Application
      </label>
      <select
        id="application"
        value={app}
        onChange={event => void navigate({ to: '/a/$app', params: { app: event.target.value } })}
        className="h-10 w-full appearance-none truncate rounded-md border border-line-strong bg-raised pr-8 pl-2.5 text-base font-medium md:h-9 md:text-sm"
      >
        {(data?.data ?? []).map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
            {id !== app && waitingCountOf(inbox, id) > 0 && ` (${waitingCountOf(inbox, id)} waiting)`}
          </option>
        ))}
      </select>
      <span className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 text-faint">
        <Icon name="down" size={16} />
      </span>
    </div>
  );
}
