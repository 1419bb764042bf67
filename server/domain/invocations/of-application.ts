// Reads invocations for members of an application. Members can read the invocations of all agent keys of the
// application.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type { ApplicationInvocationListQuery, Invocation, InvocationPage } from '../../../contract/invocations.ts';
import { hasRight } from '../../../contract/roles.ts';
import type { InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import { type InvocationId, isUuid, type KeyId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { notFound } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import type { InvocationFiles } from './files.ts';
import { filterOf, invocationView } from './view.ts';

/**
 * The scope that a token needs, in addition to the role, to read inputs and outputs. The scope is required because
 * outputs contain page content.
 */
const RESULTS_SCOPE = 'applications:write';

export interface InvocationsOfApplicationParts {
  readonly rows: Pick<InvocationRows, 'get' | 'list'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly files: Pick<InvocationFiles, 'outputWithLinks'>;
  /** Opens the sealed input of an invocation. Called only while the input is stored. */
  readonly openInput: (row: InvocationRow) => Promise<JsonObject>;
  readonly cursors: Cursors;
}

export class InvocationsOfApplication {
  readonly #parts: InvocationsOfApplicationParts;

  constructor(parts: InvocationsOfApplicationParts) {
    this.#parts = parts;
  }

  /** Lists invocations, newest first, without their inputs, outputs or receipts. */
  async list(caller: AccountCaller, appId: string, query: ApplicationInvocationListQuery): Promise<InvocationPage> {
    const { rows, applications, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor, keyId, before } = query;
    const name: ListName = { list: 'application invocations', owner: id };
    const invocationRows = await rows.list(id, {
      limit: limit + 1,
      ...filterOf(query),
      ...(keyId === undefined ? {} : { keyId: keyId.toLowerCase() as KeyId }), // Validated by the contract.
      ...(before === undefined ? {} : { createdBefore: new Date(before) }),
      ...(cursor === undefined ? {} : { before: cursors.read<InvocationId>(name, cursor) }),
    });
    return listPageOf(invocationRows, limit, summaryOf, last => cursors.after(name, last));
  }

  /**
   * Returns an invocation with its receipt. Input and output are included while they are stored, if the caller may read
   * them.
   */
  async read(caller: AccountCaller, appId: string, id: string): Promise<Invocation> {
    const { rows, applications, files, openInput } = this.#parts;
    const application = await applications.require(caller, appId, 'read');
    const row = isUuid(id) ? await rows.get(application.id, id as InvocationId) : undefined; // Checked by isUuid.
    if (!row) throw notFound('Invocation', id);
    const mayRead = hasRight(application.role, 'invocationResults') && caller.scopes.has(RESULTS_SCOPE);
    if (!mayRead) return invocationView(row);
    const view = invocationView(row, files.outputWithLinks(row));
    // Until the invocation ends, its input is stored only so that the call can be attempted again. Nobody may read it.
    if (row.inputUntil === undefined || !row.sealedInput) return view;
    return { ...view, input: await openInput(row) };
  }
}

function summaryOf(row: InvocationRow): Invocation {
  const { receipt: _, ...view } = invocationView(row);
  return view;
}
