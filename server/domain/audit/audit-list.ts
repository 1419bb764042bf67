// Reads the audit log of an application.
import type { AuditEntry, AuditPage, AuditQuery } from '../../../contract/audit.ts';
import { AUDIT_ACTIONS } from '../../../contract/audit.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type { AuditRow } from '../../engines/store/rows/audit.ts';
import type { Store } from '../../engines/store/store.ts';
import type { AuditId } from '../../kit/ids.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';

export interface AuditListParts {
  readonly store: { readonly audit: Pick<Store['audit'], 'list'> };
  readonly applications: Pick<Applications, 'require'>;
  readonly cursors: Cursors;
}

export class AuditList {
  readonly #parts: AuditListParts;

  constructor(parts: AuditListParts) {
    this.#parts = parts;
  }

  async list(caller: AccountCaller, appId: string, query: AuditQuery): Promise<AuditPage> {
    const { store, applications, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor, action, actor, after } = query;
    const name: ListName = { list: 'audit', owner: id };
    const rows = await store.audit.list(id, {
      limit: limit + 1,
      ...(cursor === undefined ? {} : { before: cursors.read<AuditId>(name, cursor) }),
      ...(action === undefined ? {} : { action }),
      ...(actor === undefined ? {} : { actorId: actor.toLowerCase() }),
      ...(after === undefined ? {} : { after: new Date(after) }),
    });
    return listPageOf(rows, limit, auditView, last => cursors.after(name, last));
  }
}

function auditView({ number: _, accountId: __, at, action, details, ...row }: AuditRow): AuditEntry {
  const knownAction = AUDIT_ACTIONS.find(one => one === action);
  if (knownAction === undefined) throw new Error(`the audit log has an unknown action: ${action}`);
  return { ...row, at: at.toISOString(), action: knownAction, ...(Object.keys(details).length > 0 ? { details } : {}) };
}
