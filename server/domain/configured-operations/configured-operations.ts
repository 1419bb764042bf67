// Configures, publishes, withdraws and deletes the operations of an application. Each change of the content creates a
// new revision.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import {
  type ConfiguredOperation,
  type ConfiguredOperationListQuery,
  type ConfiguredOperationPage,
  type ConfigureOperation,
  OPERATION_APPROVALS,
  OPERATIONS_PER_APPLICATION_MAX,
  type OperationApproval,
  RESERVED_WORDS,
  REVISIONS_KEPT_MAX,
} from '../../../contract/configured-operations.ts';
import { hasRight, REQUIRED_ROLE, type Role } from '../../../contract/roles.ts';
import type { SchemaIssue } from '../../engines/schemas/validate-job.ts';
import type {
  OperationContent,
  OperationRow,
  OperationWithContent,
} from '../../engines/store/rows/configured-operations.ts';
import type { AtomicTables, Store } from '../../engines/store/store.ts';
import { digestOf } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { cancelActionsOfOperation } from '../actions/withdrawing.ts';
import type { Audit, AuditTransaction, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import {
  fault,
  invalidRequest,
  limitReached,
  notFound,
  nothingToMatch,
  preconditionFailed,
  roleMissing,
} from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import type { Cursors } from '../identity/cursors.ts';
import { listPageById } from '../identity/page-by-id.ts';
import { revisionFrom } from '../identity/revisions.ts';
import type { CallCredentials } from '../stored-credentials/call-credentials.ts';
import { credentialsIn, type TypedCredentials } from '../stored-credentials/typed-credentials.ts';
import {
  BUILT_IN_OPERATIONS,
  definitionIn,
  findBuiltIn,
  isOperationId,
  type ManagedCallable,
  overlayIn,
} from './callable.ts';
import {
  definitionOf,
  digestOfDefinition,
  invalidSchema,
  isBrowserBinding,
  isSameContent,
  type OperationDefinition,
  type OverlayDefinition,
  type OwnKind,
  overlayOf,
} from './definition.ts';
import type { Outbound } from './outbound.ts';
import { readTemplate } from './url-template.ts';

export interface ConfiguredOperationsParts {
  readonly store: Pick<Store, 'configuredOperations' | 'atomically'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly credentials: Pick<CallCredentials, 'findProblem'>;
  readonly typedCredentials: Pick<TypedCredentials, 'findProblem'>;
  readonly outbound: Pick<Outbound, 'check'>;
  /** Compiles schemas within a time limit. Returns the problem, or undefined if the schemas can be used. */
  readonly compile: (
    schemas: Readonly<Record<string, object>>,
    jobOwner: string,
  ) => Promise<{ readonly path: string; readonly message: string } | undefined>;
  readonly validate: (
    value: unknown,
    schemas: readonly object[],
    jobOwner: string,
  ) => Promise<readonly (readonly SchemaIssue[])[]>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export interface ConfigureResult {
  readonly operation: ConfiguredOperation;
  readonly isNew: boolean;
}

type OperationAction = `operation.${'changed' | 'published' | 'withdrawn' | 'deleted'}`;

interface ApprovalAndPrice {
  readonly approval: OperationApproval;
  readonly price: { readonly microCredits: number };
}

/** The revision of a built-in operation that no member has configured. */
const BUILT_IN_REVISION = 1;

export class ConfiguredOperations {
  readonly #parts: ConfiguredOperationsParts;

  constructor(parts: ConfiguredOperationsParts) {
    this.#parts = parts;
  }

  async list(
    caller: AccountCaller,
    appId: string,
    query: ConfiguredOperationListQuery,
  ): Promise<ConfiguredOperationPage> {
    const { applications, store, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor, kind } = query;
    const rows = await store.configuredOperations.list(id);
    const builtInViews = BUILT_IN_OPERATIONS.map(operation =>
      builtInView(
        operation,
        rows.find(row => row.id === operation.id),
      ),
    );
    const ownViews = rows.filter(row => row.kind !== 'managed').map(viewOf);
    const listedOperations = [...builtInViews, ...ownViews].filter(
      operation => kind === undefined || operation.kind === kind,
    );
    listedOperations.sort((a, b) => (a.id < b.id ? -1 : 1));
    const name = { list: `operations ${kind ?? ''}`, owner: id };
    return listPageById(listedOperations, { limit, cursor, name, cursors });
  }

  async read(
    caller: AccountCaller,
    appId: string,
    operationId: string,
    revision?: number,
  ): Promise<ConfiguredOperation> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(id, operationId, revision);
  }

  async configure(
    caller: AccountCaller,
    appId: string,
    operationId: string,
    ifMatch: string | undefined,
    request: ConfigureOperation,
  ): Promise<ConfigureResult> {
    const { id, role } = await this.#parts.applications.require(caller, appId, 'operations');
    if (!isOperationId(operationId))
      throw invalidRequest([{ path: 'id', message: 'is not a valid id; expected an id such as orders.cancel' }]);
    const builtInOperation = findBuiltIn(operationId);
    if (builtInOperation)
      return {
        operation: await this.#configureBuiltIn(caller, id, role, builtInOperation, ifMatch, request),
        isNew: false,
      };
    if (isReserved(operationId)) throw reservedId(operationId);
    const { kind: ownKind, definition } = definitionOf(request);
    await this.#assertUsable(id, definition);
    const content = contentOf(operationId, ownKind, definition);
    const existingRow = await this.#parts.store.configuredOperations.get(id, operationId);
    if (!existingRow)
      await this.#insert(caller, { id: operationId, applicationId: id, kind: ownKind }, ifMatch, content);
    else {
      if (existingRow.kind !== ownKind && existingRow.status !== 'deleted') throw kindNotChangeable(existingRow);
      const revision = revisionFrom(ifMatch, existingRow.revision);
      const previousDefinition = definitionIn(existingRow.content.definition);
      assertMayRelax(role, previousDefinition, definition);
      if (revision !== existingRow.revision) throw preconditionFailed(existingRow.revision);
      if (!isSameContent(previousDefinition, definition)) await this.#change(caller, existingRow, content, false);
    }
    return { operation: await this.#view(id, operationId), isNew: !existingRow };
  }

  async publish(caller: AccountCaller, appId: string, operationId: string): Promise<ConfiguredOperation> {
    const { applications, store, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'operations');
    const row = await this.#requireOwn(id, operationId);
    if (row.status === 'published' && row.publishedRevision === row.revision) return viewOf(row);
    await this.#assertBinding(id, definitionIn(row.content.definition));
    await store.atomically(async trx => {
      const publishedRow = await trx.configuredOperations.publish(id, operationId, row.revision, clock.now());
      if (!publishedRow) throw preconditionFailed();
      await this.#record(trx, 'operation.published', caller, publishedRow, { digest: row.content.digest });
      await this.#appendEvent(trx, 'operation.published', caller, publishedRow);
    });
    return this.#view(id, operationId);
  }

  async withdraw(caller: AccountCaller, appId: string, operationId: string): Promise<ConfiguredOperation> {
    const { applications, store, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'operations');
    const row = await this.#requireOwn(id, operationId);
    if (row.status === 'withdrawn') return viewOf(row);
    if (row.status === 'draft') throw notPublished(operationId);
    await store.atomically(async trx => {
      const withdrawnRow = await trx.configuredOperations.withdraw(id, operationId, clock.now());
      if (!withdrawnRow) throw preconditionFailed();
      await this.#record(trx, 'operation.withdrawn', caller, withdrawnRow, { digest: row.content.digest });
      await this.#cancelActions(trx, caller, withdrawnRow);
      await this.#appendEvent(trx, 'operation.withdrawn', caller, withdrawnRow);
    });
    return this.#view(id, operationId);
  }

  async delete(caller: AccountCaller, appId: string, operationId: string, ifMatch: string | undefined): Promise<void> {
    const { applications, store, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'relaxOperations');
    const row = await this.#requireOwn(id, operationId);
    const revision = revisionFrom(ifMatch, row.revision);
    if (row.status === 'published') throw stillPublished(operationId);
    await store.atomically(async trx => {
      const deletedRow = await trx.configuredOperations.delete(id, operationId, revision, clock.now());
      if (!deletedRow) throw preconditionFailed();
      await this.#record(trx, 'operation.deleted', caller, deletedRow, { digest: row.content.digest });
    });
  }

  /** Changes the overlay of a built-in operation. Takes effect at once. */
  async #configureBuiltIn(
    caller: AccountCaller,
    id: ApplicationId,
    role: Role,
    builtInOperation: ManagedCallable,
    ifMatch: string | undefined,
    request: ConfigureOperation,
  ): Promise<ConfiguredOperation> {
    const overlay = overlayOf(request);
    const existingRow = await this.#parts.store.configuredOperations.get(id, builtInOperation.id);
    const revision = revisionFrom(ifMatch, existingRow?.revision ?? BUILT_IN_REVISION);
    const previousOverlay = currentOverlay(existingRow);
    assertMayRelax(role, previousOverlay, overlay);
    if (revision !== (existingRow?.revision ?? BUILT_IN_REVISION)) throw preconditionFailed(existingRow?.revision);
    const content = { digest: overlayDigest(builtInOperation, overlay), definition: { ...overlay }, credentialIds: [] };
    if (!isSameContent(previousOverlay, overlay)) {
      if (existingRow) await this.#change(caller, existingRow, content, true);
      else
        await this.#insertRow(
          caller,
          { applicationId: id, id: builtInOperation.id, kind: 'managed', status: 'published' },
          content,
          BUILT_IN_REVISION + 1,
        );
    }
    return this.#view(id, builtInOperation.id);
  }

  async #insert(
    caller: AccountCaller,
    row: Pick<OperationRow, 'applicationId' | 'id' | 'kind'>,
    ifMatch: string | undefined,
    content: OperationContent,
  ): Promise<void> {
    if (ifMatch !== undefined && ifMatch.trim() !== '*') throw nothingToMatch();
    await this.#insertRow(caller, { ...row, status: 'draft' }, content, 1);
  }

  async #insertRow(
    caller: AccountCaller,
    row: Pick<OperationRow, 'applicationId' | 'id' | 'kind' | 'status'>,
    content: OperationContent,
    firstRevision: number,
  ): Promise<void> {
    const { store, clock } = this.#parts;
    await store.atomically(async trx => {
      const max = OPERATIONS_PER_APPLICATION_MAX;
      const insertResult = await trx.configuredOperations.insert(row, content, firstRevision, max, clock.now());
      if (insertResult === 'limit_reached') throw limitReached('operations in this application', max);
      if (insertResult === 'name_taken') throw toolNameTaken(row.id);
      if (!insertResult) throw preconditionFailed();
      const details = { digest: content.digest, ...unattendedDetails(content) };
      await this.#record(trx, 'operation.changed', caller, insertResult, details);
      if (isDisabled(insertResult, content)) await this.#cancelActions(trx, caller, insertResult);
    });
  }

  async #change(
    caller: AccountCaller,
    row: OperationWithContent,
    content: OperationContent,
    publish: boolean,
  ): Promise<void> {
    const { store, clock } = this.#parts;
    const options = { publish, kept: REVISIONS_KEPT_MAX, now: clock.now() };
    await store.atomically(async trx => {
      const changedRow = await trx.configuredOperations.change(
        row.applicationId,
        row.id,
        row.revision,
        content,
        options,
      );
      if (!changedRow) throw preconditionFailed(row.revision);
      const details = { digest: content.digest, before: row.content.digest, ...unattendedDetails(content) };
      await this.#record(trx, 'operation.changed', caller, changedRow, details);
      if (isDisabled(changedRow, content)) await this.#cancelActions(trx, caller, changedRow);
    });
  }

  /**
   * Runs the checks that need other parts of the server: the worker that compiles schemas, the vault and the network.
   */
  async #assertUsable(id: ApplicationId, definition: OperationDefinition): Promise<void> {
    const { compile, validate } = this.#parts;
    const { inputSchema, outputSchema, examples } = definition;
    const schemaIssue = await compile({ inputSchema, ...(outputSchema ? { outputSchema } : {}) }, id);
    if (schemaIssue) throw invalidSchema(schemaIssue.path, schemaIssue.message);
    for (const [index, { input }] of examples.entries()) {
      const [issues = []] = await validate(input, [inputSchema], id);
      if (issues.length > 0)
        throw invalidRequest(
          issues.map(({ path, message }) => ({
            path: `examples[${index}].input${path === '' ? '' : `.${path}`}`,
            message,
          })),
        );
    }
    await this.#assertBinding(id, definition);
  }

  async #assertBinding(id: ApplicationId, { binding }: OperationDefinition): Promise<void> {
    const { credentials, typedCredentials: browserCredentials, outbound } = this.#parts;
    if (isBrowserBinding(binding)) {
      // The hosts are not checked here, because the rules of the session are applied to each request of its browser.
      const problem = await browserCredentials.findProblem(id, credentialsIn(binding.steps));
      if (problem !== undefined) throw invalidRequest([{ path: 'binding.steps', message: problem }]);
      return;
    }
    const template = readTemplate(binding.url);
    if (typeof template === 'string') throw invalidRequest([{ path: 'binding.url', message: template }]);
    const problem = binding.auth && (await credentials.findProblem(id, binding.auth, template.host));
    if (problem !== undefined) throw invalidRequest([{ path: 'binding.auth.credentialId', message: problem }]);
    const refusal = await outbound.check(`${template.isEncrypted ? 'https' : 'http'}://${template.host}/`);
    if (refusal?.phase === 'refused')
      throw invalidRequest([{ path: 'binding.url', message: `cannot be called. ${refusal.message}` }]);
  }

  async #requireOwn(id: ApplicationId, operationId: string): Promise<OperationWithContent> {
    if (!isOperationId(operationId)) throw notFound('Operation', operationId);
    if (findBuiltIn(operationId)) throw reservedId(operationId);
    const row = await this.#parts.store.configuredOperations.get(id, operationId);
    if (!row || row.kind === 'managed') throw notFound('Operation', operationId);
    return row;
  }

  async #view(id: ApplicationId, operationId: string, revision?: number): Promise<ConfiguredOperation> {
    if (!isOperationId(operationId)) throw notFound('Operation', operationId);
    const builtInOperation = findBuiltIn(operationId);
    const isWithoutOverlay = builtInOperation && revision === BUILT_IN_REVISION;
    const row = isWithoutOverlay
      ? undefined
      : await this.#parts.store.configuredOperations.get(id, operationId, revision);
    const revisionField = revision === undefined ? {} : { revision };
    if (builtInOperation && (row || isWithoutOverlay || revision === undefined))
      return { ...builtInView(builtInOperation, row), ...revisionField };
    if (!row || row.kind === 'managed') throw notFound('Operation', operationId);
    return { ...viewOf(row), ...revisionField };
  }

  #cancelActions(
    trx: Pick<AtomicTables, 'actions'> & AuditTransaction,
    caller: AccountCaller,
    row: OperationRow,
  ): Promise<void> {
    const { audit, clock } = this.#parts;
    return cancelActionsOfOperation(trx, row, { audit, source: byCaller(caller), now: clock.now() });
  }

  /** Appends an event. Must be the last statement of its transaction, because readers of events wait for its lock. */
  #appendEvent(
    { applicationEvents }: Pick<Store, 'applicationEvents'>,
    type: 'operation.published' | 'operation.withdrawn',
    { accountId }: AccountCaller,
    { applicationId, id, kind, revision }: OperationRow,
  ): Promise<void> {
    const detail = { operationId: id, kind, revision };
    const actor = { kind: 'account', id: accountId } as const;
    return applicationEvents.append(applicationId, { type, at: this.#parts.clock.now(), actor, detail });
  }

  #record(
    trx: AuditTransaction,
    action: OperationAction,
    caller: AccountCaller,
    { applicationId, id, revision }: OperationRow,
    details: Readonly<Record<string, Detail>>,
  ): Promise<void> {
    const target = { kind: 'operation', id };
    const entry = { ...byCaller(caller), action, applicationId, target, outcome: 'success' } as const;
    return this.#parts.audit.record({ ...entry, details: { revision, ...details } }, trx);
  }
}

/** The audit log must show who allowed an irreversible operation to run without an approval. */
const unattendedDetails = ({ definition }: OperationContent): Readonly<Record<string, Detail>> =>
  definition.acknowledgeUnattended === true ? { acknowledgeUnattended: true } : {};

const contentOf = (id: string, kind: OwnKind, definition: OperationDefinition): OperationContent => {
  const { binding } = definition;
  const usedCredentialIds = isBrowserBinding(binding)
    ? credentialsIn(binding.steps)
    : [binding.auth?.credentialId ?? []].flat();
  return {
    digest: digestOfDefinition(id, kind, definition),
    definition: definition as unknown as JsonObject, // A definition consists of JSON values.
    credentialIds: usedCredentialIds,
  };
};

const currentOverlay = (row: OperationWithContent | undefined): OverlayDefinition =>
  row ? overlayIn(row.content.definition) : { enabled: true, approval: 'none', price: { microCredits: 0 } };

/**
 * Returns the digest of the operation with its overlay. If the operation is enabled and needs no approval, this is the
 * digest that receipts contain.
 */
const overlayDigest = ({ digest }: ManagedCallable, { approval, enabled }: OverlayDefinition): string =>
  approval === 'none' && enabled ? digest : digestOf({ digest, approval, enabled });

function assertMayRelax(role: Role, previous: ApprovalAndPrice, next: ApprovalAndPrice): void {
  const isWeaker = approvalStrength(next.approval) < approvalStrength(previous.approval);
  const isMoreExpensive = next.price.microCredits > previous.price.microCredits;
  if ((isWeaker || isMoreExpensive) && !hasRight(role, 'relaxOperations'))
    throw roleMissing(REQUIRED_ROLE.relaxOperations);
}

const approvalStrength = (approval: OperationApproval): number => OPERATION_APPROVALS.indexOf(approval);

function builtInView(builtInOperation: ManagedCallable, row: OperationWithContent | undefined): ConfiguredOperation {
  const { id, kind, title, description, effect, inputSchema, outputSchema, timeoutMs } = builtInOperation;
  const overlay = currentOverlay(row);
  return {
    ...{ id, kind, title, description, effect, inputSchema, outputSchema, timeoutMs, ...overlay, examples: [] },
    ...{
      status: 'published',
      revision: row?.revision ?? BUILT_IN_REVISION,
      digest: overlayDigest(builtInOperation, overlay),
    },
    ...(row ? { createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() } : {}),
  };
}

function viewOf({
  id,
  kind,
  status,
  revision,
  publishedRevision,
  content,
  createdAt,
  updatedAt,
}: OperationWithContent): ConfiguredOperation {
  if (status === 'deleted') throw notFound('Operation', id);
  return {
    ...{ id, kind, status, revision, digest: content.digest, ...definitionIn(content.definition) },
    ...(publishedRevision === undefined ? {} : { publishedRevision }),
    ...{ createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() },
  };
}

/** Whether this is a built-in operation that members have disabled. Agents can no longer call such an operation. */
const isDisabled = ({ kind }: OperationRow, { definition }: OperationContent): boolean =>
  kind === 'managed' && !overlayIn(definition).enabled;

const isReserved = (id: string): boolean =>
  RESERVED_WORDS.some(word => id === word || (/^[._-]/.test(id.slice(word.length)) && id.startsWith(word)));

const reservedId = (id: string): Error =>
  fault(
    'permission_denied',
    `The id ${id} is reserved for built-in operations, which cannot be created, published or deleted.`,
    {
      advice: 'Choose another id. For a built-in operation, only enabled, approval and price can be set.',
    },
  );

const toolNameTaken = (id: string): Error =>
  fault('name_taken', `Another operation has the same tool name as ${id}.`, {
    advice: 'The tool name is the id with each dot replaced by _. Choose an id that gives a different tool name.',
  });

const kindNotChangeable = ({ id, kind }: OperationRow): Error =>
  invalidRequest([{ path: 'kind', message: `is ${kind} for the operation ${id}, and cannot be changed` }]);

const notPublished = (id: string): Error =>
  fault('not_ready', `The operation ${id} is not published, so it cannot be withdrawn.`, {
    advice: 'To remove a draft, delete the operation.',
  });

const stillPublished = (id: string): Error =>
  fault('not_ready', `The operation ${id} is published, so it cannot be deleted.`, {
    advice: 'Withdraw the operation first.',
  });
