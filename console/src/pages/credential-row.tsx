// A row for an agent key or an access token.
import type { ReactNode } from 'react';
import type { AgentKey } from '../../../contract/agent-keys.ts';
import type { Token } from '../../../contract/tokens.ts';
import { Ago, fullTime } from '../ui/time.tsx';

export const CredentialRow = ({
  credential,
  note,
  actions,
}: {
  readonly credential: AgentKey | Token;
  readonly note?: string;
  readonly actions?: ReactNode;
}) => {
  const { name, prefix, scopes, status, createdAt, expiresAt, revokedAt, lastUsedAt } = credential;
  return (
    <li className="grid gap-x-6 gap-y-1 px-4 py-3 md:grid-cols-[minmax(0,1fr)_minmax(0,1.1fr)_170px_auto] md:items-center">
      <div className="min-w-0">
        <p className={`truncate font-medium ${status === 'active' ? '' : 'text-soft'}`}>
          {name}
          {note && <span className="ml-2 text-xs font-normal text-faint">{note}</span>}
        </p>
        <code className="font-mono text-xs text-soft">{prefix}…</code>
      </div>
      <p className="text-xs leading-relaxed break-words text-soft">
        {scopes.join(', ')}
        {'grants' in credential && credential.grants.length > 0 && (
          <>
            <br />
            Grants: {credential.grants.map(({ operationId }) => operationId).join(', ')}
          </>
        )}
      </p>
      <div className="text-xs leading-relaxed text-soft">
        <p>
          Created <Ago time={createdAt} />
        </p>
        <p>
          {revokedAt ? (
            <span className="text-bad">
              Revoked <Ago time={revokedAt} />
            </span>
          ) : status === 'expired' && expiresAt ? (
            <span className="text-warn">
              Expired <Ago time={expiresAt} />
            </span>
          ) : (
            <>
              {lastUsedAt ? (
                <>
                  Used <Ago time={lastUsedAt} />
                </>
              ) : (
                'Never used'
              )}
              {expiresAt && `, until ${fullTime(expiresAt)}`}
            </>
          )}
        </p>
      </div>
      <div className="flex gap-1 max-md:-ml-2 md:w-52 md:justify-end">{actions}</div>
    </li>
  );
};
