// The pages that the navigation and the command palette lead to.
import type { IconName } from '../ui/icon.tsx';

/** Pages of an application, each with the operation that it requires. */
export const PAGES = [
  { to: '/a/$app/inbox', icon: 'inbox', name: 'Inbox', needs: 'listApplicationActions' },
  { to: '/a/$app', icon: 'overview', name: 'Overview', needs: 'readApplicationUsage' },
  { to: '/a/$app/sessions', icon: 'sessions', name: 'Sessions', needs: 'listSessions' },
  { to: '/a/$app/operations', icon: 'operations', name: 'Operations', needs: 'listConfiguredOperations' },
  { to: '/a/$app/invocations', icon: 'invocations', name: 'Invocations', needs: 'listApplicationInvocations' },
  { to: '/a/$app/playground', icon: 'play', name: 'Playground', needs: 'createSession' },
  { to: '/a/$app/contexts', icon: 'contexts', name: 'Contexts', needs: 'listContexts' },
  { to: '/a/$app/extensions', icon: 'extensions', name: 'Extensions', needs: 'uploadExtension' },
  { to: '/a/$app/certificates', icon: 'certificates', name: 'Certificates', needs: 'listCertificates' },
  { to: '/a/$app/keys', icon: 'keys', name: 'Agent keys', needs: 'listAgentKeys' },
  { to: '/a/$app/credentials', icon: 'credentials', name: 'Credentials', needs: 'listStoredCredentials' },
  { to: '/a/$app/webhooks', icon: 'webhooks', name: 'Webhooks', needs: 'listWebhooks' },
  { to: '/a/$app/credit', icon: 'credit', name: 'Credit', needs: 'readCredits' },
  { to: '/a/$app/limits', icon: 'limits', name: 'Limits and usage', needs: 'readLimits' },
  { to: '/a/$app/members', icon: 'account', name: 'Members', needs: 'listMembers' },
  { to: '/a/$app/audit', icon: 'docs', name: 'Audit log', needs: 'listAuditEntries' },
] as const satisfies ReadonlyArray<{ to: string; icon: IconName; name: string; needs: string }>;

/** Pages of the service. */
export const SERVICE_PAGES = [
  { to: '/account', icon: 'account', name: 'Account' },
  { to: '/applications', icon: 'applications', name: 'Applications' },
  { to: '/tokens', icon: 'tokens', name: 'Access tokens' },
  { to: '/hosts', icon: 'host', name: 'Hosts' },
] as const satisfies ReadonlyArray<{ to: string; icon: IconName; name: string }>;

/** Only for the operator. */
export const OUTBOX_PAGE = { to: '/outbox', icon: 'outbox', name: 'Outbox' } as const;
