// The routes of the console.
import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import { AccountPage } from './pages/account.tsx';
import { ApplicationsPage } from './pages/applications.tsx';
import { AuditPage, readAuditFilters } from './pages/audit.tsx';
import { CertificatesPage } from './pages/certificates.tsx';
import { ContextsPage } from './pages/contexts.tsx';
import { CreditPage } from './pages/credit.tsx';
import { readCreditView } from './pages/credit-words.ts';
import { ExtensionsPage } from './pages/extensions.tsx';
import { HomePage } from './pages/home.tsx';
import { HostPage } from './pages/host.tsx';
import { HostsPage } from './pages/hosts.tsx';
import { InboxPage } from './pages/inbox.tsx';
import { InboxHomePage } from './pages/inbox-home.tsx';
import { InvocationPage } from './pages/invocation.tsx';
import { readInvocationFilters } from './pages/invocation-filters.ts';
import { InvocationsPage } from './pages/invocations.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LimitsPage } from './pages/limits.tsx';
import { MembersPage } from './pages/members.tsx';
import { MissingPage } from './pages/missing.tsx';
import { NewOperationPage } from './pages/new-operation.tsx';
import { NewSessionPage } from './pages/new-session.tsx';
import { OperationPage } from './pages/operation.tsx';
import { OperationsPage } from './pages/operations.tsx';
import { OutboxPage } from './pages/outbox.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { readPeriod } from './pages/overview-period.ts';
import { PlaygroundPage } from './pages/playground.tsx';
import { SessionPage } from './pages/session.tsx';
import { readSessionView } from './pages/session-view.ts';
import { readFilters, SessionsPage } from './pages/sessions.tsx';
import { StoredCredentialsPage } from './pages/stored-credentials.tsx';
import { TokensPage } from './pages/tokens.tsx';
import { WebhooksPage } from './pages/webhooks.tsx';
import { Shell } from './shell/shell.tsx';

const root = createRootRoute({ component: Shell, notFoundComponent: MissingPage });
const getRoot = () => root;

const home = createRoute({ getParentRoute: getRoot, path: '/', component: HomePage });
const overview = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app',
  validateSearch: readPeriod,
  component: function Overview() {
    const { app } = overview.useParams();
    return <OverviewPage key={app} app={app} {...readPeriod(overview.useSearch())} />;
  },
});
const inbox = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/inbox',
  component: function Inbox() {
    const { app } = inbox.useParams();
    return <InboxPage key={app} app={app} />;
  },
});
const inboxHome = createRoute({ getParentRoute: getRoot, path: '/inbox', component: InboxHomePage });
const sessions = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/sessions',
  validateSearch: readFilters,
  component: function Sessions() {
    const { app } = sessions.useParams();
    // The filters are validated again, because the router also passes on unknown search parameters.
    return <SessionsPage key={app} app={app} filters={readFilters(sessions.useSearch())} />;
  },
});
const newSession = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/sessions/new',
  component: function NewSession() {
    const { app } = newSession.useParams();
    return <NewSessionPage key={app} app={app} />;
  },
});
const playground = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/playground',
  component: function Playground() {
    const { app } = playground.useParams();
    return <PlaygroundPage key={app} app={app} />;
  },
});
const session = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/sessions/$id',
  validateSearch: readSessionView,
  component: function Session() {
    const { app, id } = session.useParams();
    return <SessionPage key={id} app={app} id={id} view={readSessionView(session.useSearch())} />;
  },
});
const operations = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/operations',
  component: function Operations() {
    const { app } = operations.useParams();
    return <OperationsPage key={app} app={app} />;
  },
});
const newOperation = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/operations/new',
  component: function NewOperation() {
    const { app } = newOperation.useParams();
    return <NewOperationPage key={app} app={app} />;
  },
});
const operation = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/operations/$id',
  component: function Operation() {
    const { app, id } = operation.useParams();
    return <OperationPage key={`${app} ${id}`} app={app} id={id} />;
  },
});
const invocations = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/invocations',
  validateSearch: readInvocationFilters,
  component: function Invocations() {
    const { app } = invocations.useParams();
    return <InvocationsPage key={app} app={app} filters={readInvocationFilters(invocations.useSearch())} />;
  },
});
const invocation = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/invocations/$id',
  component: function Invocation() {
    const { app, id } = invocation.useParams();
    return <InvocationPage key={id} app={app} id={id} />;
  },
});
const keys = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/keys',
  component: function Keys() {
    const { app } = keys.useParams();
    return <KeysPage key={app} app={app} />;
  },
});
const credentials = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/credentials',
  component: function Credentials() {
    const { app } = credentials.useParams();
    return <StoredCredentialsPage key={app} app={app} />;
  },
});
const webhooks = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/webhooks',
  component: function Webhooks() {
    const { app } = webhooks.useParams();
    return <WebhooksPage key={app} app={app} />;
  },
});
const credit = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/credit',
  validateSearch: readCreditView,
  component: function Credit() {
    const { app } = credit.useParams();
    return <CreditPage key={app} app={app} view={readCreditView(credit.useSearch())} />;
  },
});
const limits = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/limits',
  component: function Limits() {
    const { app } = limits.useParams();
    return <LimitsPage key={app} app={app} />;
  },
});
const members = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/members',
  component: function Members() {
    const { app } = members.useParams();
    return <MembersPage key={app} app={app} />;
  },
});
const audit = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/audit',
  validateSearch: readAuditFilters,
  component: function Audit() {
    const { app } = audit.useParams();
    return <AuditPage key={app} app={app} filters={readAuditFilters(audit.useSearch())} />;
  },
});
const contexts = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/contexts',
  component: function Contexts() {
    const { app } = contexts.useParams();
    return <ContextsPage key={app} app={app} />;
  },
});
const extensions = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/extensions',
  component: function Extensions() {
    const { app } = extensions.useParams();
    return <ExtensionsPage key={app} app={app} />;
  },
});
const certificates = createRoute({
  getParentRoute: getRoot,
  path: '/a/$app/certificates',
  component: function Certificates() {
    const { app } = certificates.useParams();
    return <CertificatesPage key={app} app={app} />;
  },
});
const applications = createRoute({ getParentRoute: getRoot, path: '/applications', component: ApplicationsPage });
const account = createRoute({ getParentRoute: getRoot, path: '/account', component: AccountPage });
const tokens = createRoute({ getParentRoute: getRoot, path: '/tokens', component: TokensPage });
const outbox = createRoute({ getParentRoute: getRoot, path: '/outbox', component: OutboxPage });
const host = createRoute({ getParentRoute: getRoot, path: '/host', component: HostPage });

const hosts = createRoute({ getParentRoute: getRoot, path: '/hosts', component: HostsPage });

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    overview,
    inbox,
    inboxHome,
    sessions,
    operations,
    newOperation,
    operation,
    invocations,
    invocation,
    playground,
    newSession,
    session,
    contexts,
    extensions,
    certificates,
    keys,
    credentials,
    webhooks,
    credit,
    limits,
    members,
    audit,
    applications,
    account,
    tokens,
    outbox,
    host,
    hosts,
  ]),
  basepath: '/console',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
