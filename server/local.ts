// The operator's commands that use a data folder or database without a server. They do not listen on the network, use
// the same domain code as a server, and may run while a server is running.
import { AGENT_KEY_SCOPES, type AgentKeyScope } from '../contract/agent-keys.ts';
import type { Credits as CreditsView } from '../contract/credits.ts';
import { TOKEN_SCOPES, type TokenScope } from '../contract/tokens.ts';
import { type Config, readConfig } from './config.ts';
import { Audit } from './domain/audit/audit.ts';
import { BY_OPERATOR } from './domain/audit/by-caller.ts';
import { SealHeads } from './domain/audit/seal-heads.ts';
import { type AuditVerdict, verifyAudit } from './domain/audit/verify.ts';
import { Credits } from './domain/credits/credits.ts';
import { grantCredit } from './domain/credits/granting.ts';
import { sweep, sweepPlan } from './domain/files/retention.ts';
import { AgentKeys } from './domain/identity/agent-keys.ts';
import { Applications } from './domain/identity/applications.ts';
import { Cursors } from './domain/identity/cursors.ts';
import { consoleTokenRequest } from './domain/identity/first-start.ts';
import { Tokens } from './domain/identity/tokens.ts';
import { localTallies } from './domain/limits/lone-tallies.ts';
import { cleanEmail } from './domain/people/email.ts';
import { setUpAddress } from './domain/people/set-up-address.ts';
import { newSetUpSecret } from './domain/people/set-up-links.ts';
import { confirmCheckout } from './domain/topups/topups.ts';
import type { AccountRow, ApplicationRow } from './engines/store/rows/accounts.ts';
import type { AuditRow } from './engines/store/rows/audit.ts';
import type { CheckoutRow } from './engines/store/rows/checkouts.ts';
import type { KeyRow, TokenRow } from './engines/store/rows/credentials.ts';
import type { BalanceRow } from './engines/store/rows/credits.ts';
import type { ListedHost } from './engines/store/rows/hosts.ts';
import type { MailRow } from './engines/store/rows/mails.ts';
import type { Store } from './engines/store/store.ts';
import { rotateMasterKey } from './engines/vault/vault.ts';
import { type Clock, systemClock } from './kit/clock.ts';
import { Fault } from './kit/fault.ts';
import { type AccountId, type ApplicationId, type HostId, isUuid, newId } from './kit/ids.ts';
import { type Log, silentLog } from './kit/log.ts';
import type { Runtime } from './kit/runtime.ts';
import { type Closeable, Scope } from './kit/scope.ts';
import type { Secret } from './kit/secret.ts';
import { openKeptFiles } from './wiring/kept-files.ts';
import { retentionOf } from './wiring/retention.ts';
import { commandRuntime, openDatabase } from './wiring/runtime.ts';
import { openVault, signingKeys, vaultParts } from './wiring/vault.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface CredentialOptions {
  readonly name: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: Date;
}

export interface TokenOptions extends CredentialOptions {
  readonly applicationIds?: readonly string[];
  readonly cidrAllow?: readonly string[];
}

export interface Local extends Closeable {
  readonly config: Config;
  readonly store: Store;
  /**
   * Finds an application by id, slug or exact name. Without an argument, finds the only application of the first
   * account.
   */
  application(idOrName?: string): Promise<ApplicationRow>;
  /** Like `application`. Without an argument, creates the first account and its application if they do not exist. */
  getOrCreateApplication(idOrName?: string): Promise<ApplicationRow>;
  createKey(application: ApplicationId, options: CredentialOptions): Promise<{ row: KeyRow; key: Secret }>;
  listKeys(application: ApplicationId): Promise<KeyRow[]>;
  revokeKey(application: ApplicationId, id: string): Promise<void>;
  /** Returns the data that is due for removal now. */
  sweepPlan(): ReturnType<typeof sweepPlan>;
  sweep(): ReturnType<typeof sweep>;
  createToken(options: TokenOptions): Promise<{ row: TokenRow; token: Secret }>;
  /** All tokens of the account, including those of console links. */
  listTokens(): Promise<TokenRow[]>;
  revokeToken(id: string): Promise<void>;
  /** Replaces the master key of the vault. */
  rotateMasterKey(): Promise<{ readonly rewrapped: number }>;
  rotateSigningKey(): Promise<{ readonly kid: string }>;
  /** Lists entries of the audit log, newest first: those of an application, or those that belong to no application. */
  listAudit(application: ApplicationId | undefined, limit: number): Promise<AuditRow[]>;
  /** Checks the seals of the audit log. */
  verifyAudit(): Promise<AuditVerdict>;
  /** Creates a token that signs in to the console and is valid for a day. */
  createConsoleToken(): Promise<Secret>;
  /**
   * Returns a single-use link with which a person sets up an account: the account with this e-mail address, or the
   * account that was created at the first start.
   */
  createSetUpLink(email?: string): Promise<string>;
  /** Returns the credit of the account that pays for the application. */
  credits(application: ApplicationRow): Promise<CreditsView>;
  /**
   * Gives micro-credits to an account, named by its e-mail address or id, or by `-` for the account that was created at
   * the first start.
   */
  grantCredit(account: string, amount: number, reason: string): Promise<BalanceRow>;
  /** Adds the credit that was ordered in a checkout. */
  confirmCheckout(id: string, reason?: string): Promise<CheckoutRow>;
  /** The hosts that share this database. */
  listHosts(): Promise<ListedHost[]>;
  /** Drains the host, so that it gets no new sessions. If `draining` is false, ends the drain. */
  drainHost(id: string, draining: boolean): Promise<void>;
  /** Removes a host that is no longer alive from the list. */
  removeHost(id: string): Promise<void>;
  /** E-mails, newest first. */
  listMails(): Promise<MailRow[]>;
}

const PAGE_SIZE = 200;

export async function openLocal(env: Environment, log: Log = silentLog, clock: Clock = systemClock): Promise<Local> {
  const config = readConfig(env);
  const scope = new Scope();
  try {
    return await open(config, clock, log, scope);
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function open(config: Config, clock: Clock, log: Log, scope: Scope): Promise<Local> {
  const store = scope.own(await openDatabase({ clock, log }, config, { isBesideServer: true }));
  const { runtime, secret } = commandRuntime(config, clock, log);
  const cursors = new Cursors(secret, clock);
  const audit = new Audit(store, clock);
  /** Nothing to do here, because the store notifies other processes. */
  const onCredentialChanged = (): void => {};
  const applications = new Applications({ store, clock, cursors, audit, onCredentialChanged });
  const keys = new AgentKeys({ store, clock, cursors, applications, audit, onCredentialChanged });
  const tallies = localTallies(clock);
  const tokens = new Tokens({ store, clock, cursors, applications, audit, onCredentialChanged, tallies });
  const getAccount = () => operatorAccount(store, clock);
  const { rates } = config.credit;
  const credits = new Credits({ rows: store.credits, hours: store.usageHours, applications, cursors, rates, clock });
  return {
    config,
    store,
    application: async idOrName => (await findApplication(store, idOrName)) ?? throwNoApplication(),
    getOrCreateApplication: async idOrName =>
      (await findApplication(store, idOrName)) ?? applications.insert((await getAccount()).id, { name: 'Default' }),
    createKey: (application, options) =>
      keys.issue(application, { ...commonOptions(options), ...keyScopes(options.scopes) }),
    listKeys: application => listAll(query => store.keys.list(application, clock.now(), query)),
    revokeKey: (application, id) => keys.end(application, id),
    createToken: async options =>
      tokens.issue((await getAccount()).id, {
        ...{ ...commonOptions(options), scopes: tokenScopes(options.scopes) },
        ...(options.applicationIds ? { applicationIds: [...options.applicationIds] } : {}),
        ...(options.cidrAllow ? { cidrAllow: [...options.cidrAllow] } : {}),
      }),
    listTokens: async () => {
      const { id } = await getAccount();
      return listAll(query => store.tokens.list(id, clock.now(), query));
    },
    revokeToken: async id => tokens.end((await getAccount()).id, id),
    createConsoleToken: async () => (await tokens.issue((await getAccount()).id, consoleTokenRequest(clock))).token,
    createSetUpLink: async email => {
      const { id } = email === undefined ? await getAccount() : await accountOf(store, email);
      return setUpAddress(config.publicUrl, await newSetUpSecret(store, clock, id));
    },
    credits: application => credits.readView(application),
    grantCredit: async (idOrEmail, amount, reason) =>
      grantCredit({ store, audit, clock }, (await findAccount(store, getAccount, idOrEmail)).id, amount, reason),
    confirmCheckout: (id, reason) => confirmCheckout({ store, audit, clock }, id, reason),
    ...hostMethods(store),
    listMails: () => store.mails.list(PAGE_SIZE),
    rotateMasterKey: () => rotateVault(config, store, clock, audit),
    rotateSigningKey: () => rotateSigning(runtime, config, store, audit),
    listAudit: (application, limit) => store.audit.list(application, { limit }),
    verifyAudit: async () =>
      verifyAudit({
        ...{ store, clock, heads: new SealHeads(config.dataDir) },
        keys: signingKeys(runtime, store, await openVault(config, store, clock)),
      }),
    sweepPlan: () => sweepPlan({ rows: store.retention, clock }),
    sweep: () => sweepNow(runtime, config, store),
    close: () => scope.close(),
  };
}

/** Removes the data that is due for removal. A running server also removes such data, with its own task. */
async function sweepNow(runtime: Runtime, config: Config, store: Store): ReturnType<typeof sweep> {
  const scope = new Scope();
  try {
    const trigger = (): void => {}; // Does nothing, because the files that wait in the outbox are stored by the server.
    const { artifacts, outbox } = await openKeptFiles(runtime, { config, store, scope, trigger });
    return await sweep(retentionOf(runtime, { store, artifacts, outbox }));
  } finally {
    await scope.close();
  }
}

async function rotateVault(config: Config, store: Store, clock: Clock, audit: Audit): Promise<{ rewrapped: number }> {
  await openVault(config, store, clock);
  const { rewrappedCount: rewrapped } = await rotateMasterKey(vaultParts(config, store, clock));
  await audit.record({ ...BY_OPERATOR, action: 'vault.rotated', outcome: 'success', details: { rewrapped } });
  return { rewrapped };
}

async function rotateSigning(runtime: Runtime, config: Config, store: Store, audit: Audit): Promise<{ kid: string }> {
  const vault = await openVault(config, store, runtime.clock);
  const { kid } = await signingKeys(runtime, store, vault).rotate();
  const target = { kind: 'signing_key', id: kid };
  await audit.record({ ...BY_OPERATOR, action: 'signing_key.rotated', target, outcome: 'success' });
  return { kid };
}

const hostMethods = ({ hosts }: Pick<Store, 'hosts'>): Pick<Local, 'listHosts' | 'drainHost' | 'removeHost'> => ({
  listHosts: () => hosts.list(),
  drainHost: async (id, draining) => {
    if (!(isUuid(id) && (await hosts.drain(id as HostId, draining)))) throw noHostFault(id);
  },
  removeHost: async id => {
    if (isUuid(id) && (await hosts.remove(id as HostId))) return;
    if (!(await hosts.list()).some(host => host.id === id)) throw noHostFault(id);
    throw new Fault('host_lives', `Host ${id} cannot be removed, because it is still running or has sessions.`, {
      advice: 'First drain it with `berth hosts drain` and stop its server.',
    });
  },
});

const noHostFault = (id: string): Fault =>
  new Fault('not_found', `There is no host ${id}.`, { advice: 'Run `berth hosts list` to see all hosts.' });

const commonOptions = (options: CredentialOptions): { name: string; expiresAt?: string } => ({
  name: options.name,
  ...(options.expiresAt ? { expiresAt: options.expiresAt.toISOString() } : {}),
});

function keyScopes(requested: readonly string[] | undefined): { scopes?: AgentKeyScope[] } {
  return requested === undefined ? {} : { scopes: chooseScopes(AGENT_KEY_SCOPES, requested) };
}

const tokenScopes = (requested: readonly string[] | undefined): TokenScope[] =>
  chooseScopes(TOKEN_SCOPES, requested ?? TOKEN_SCOPES);

function chooseScopes<Scope extends string>(knownScopes: readonly Scope[], requested: readonly string[]): Scope[] {
  const unknownScopes = requested.filter(scope => !knownScopes.some(one => one === scope));
  if (unknownScopes.length === 0) return knownScopes.filter(scope => requested.includes(scope));
  throw new Fault('invalid_request', `There is no scope ${unknownScopes.join(', ')}.`, {
    advice: `Choose from ${knownScopes.join(', ')}.`,
  });
}

/** Returns the first account. Creates it if there is none, as the first start of a server does. */
async function operatorAccount(store: Store, clock: Clock): Promise<AccountRow> {
  const existingAccount = await store.accounts.first();
  if (existingAccount) return existingAccount;
  const now = clock.now();
  const account: AccountRow = { id: newId<AccountId>(now), name: 'Operator', createdAt: now };
  await store.accounts.insert(account);
  return account;
}

async function accountOf(store: Store, email: string): Promise<AccountRow> {
  const accountWithEmail = await store.accounts.byEmail(cleanEmail(email));
  if (!accountWithEmail)
    throw new Fault('not_found', `No account has the e-mail address ${email}.`, {
      advice: 'Check the spelling of the address.',
    });
  return accountWithEmail;
}

async function findAccount(
  store: Store,
  getFirstAccount: () => Promise<AccountRow>,
  idOrEmail: string,
): Promise<AccountRow> {
  if (idOrEmail === '-') return getFirstAccount();
  if (!isUuid(idOrEmail)) return accountOf(store, idOrEmail);
  // The cast is safe, because `isUuid` has checked the string.
  const accountWithId = await store.accounts.get(idOrEmail as AccountId);
  if (!accountWithId)
    throw new Fault('not_found', `No account has the id ${idOrEmail}.`, {
      advice: 'Check the id, or pass the e-mail address of the account.',
    });
  return accountWithId;
}

/** Without a name, returns the only application of the first account, or undefined if there is none. */
async function findApplication(store: Store, idOrName: string | undefined): Promise<ApplicationRow | undefined> {
  if (idOrName !== undefined) return requireSingle(await store.applications.find(idOrName), idOrName);
  const account = await store.accounts.first();
  const [first, second] = account ? await store.applications.list(account.id, { limit: 2 }) : [];
  if (first && second)
    throw new Fault('invalid_request', 'The account has several applications.', {
      advice: 'Select one with --application ID or --application NAME.',
    });
  return first;
}

function throwNoApplication(): never {
  throw new Fault('not_found', 'There is no application yet.', {
    advice: 'Start the server. Its first start creates the application Default, and prints a key for it.',
  });
}

function requireSingle(matches: readonly ApplicationRow[], idOrName: string): ApplicationRow {
  const [first, second] = matches;
  if (first && !second) return first;
  if (!first)
    throw new Fault('not_found', `No application has the id, slug or name ${idOrName}.`, {
      advice: 'Check the spelling; the console and `berth apps list` show all applications.',
    });
  throw new Fault('invalid_request', `Several applications have the name ${idOrName}.`, {
    advice: `Select one by its id: ${matches.map(row => row.id).join(', ')}.`,
  });
}

/** Returns all rows of a list, in the order of the list. */
async function listAll<Row extends { readonly id: string }>(
  list: (query: { readonly limit: number; readonly before?: Row['id'] }) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const last = rows.at(-1);
    const page = await list({ limit: PAGE_SIZE, ...(last ? { before: last.id } : {}) });
    rows.push(...page);
    if (page.length < PAGE_SIZE) return rows;
  }
}
