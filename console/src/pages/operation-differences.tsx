// The differences between the newest revision of an operation and its published revision, which agents call.
import { useQuery } from '@tanstack/react-query';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { operationRevisionQuery } from '../api/queries.ts';
import { type Difference, differences } from '../json/differences.ts';
import { Panel } from '../ui/page.tsx';
import { LoadError, LoadingRows } from '../ui/states.tsx';

const DIFFERENCES_MAX = 40;
const CHARACTERS_MAX = 300;

export function OperationDifferences({
  app,
  operation,
  publishedRevision,
}: {
  readonly app: string;
  readonly operation: ConfiguredOperation;
  readonly publishedRevision: number;
}) {
  const { data, error, refetch } = useQuery(operationRevisionQuery(app, operation.id, publishedRevision));
  const changes = data && differences(contentOf(data), contentOf(operation));
  return (
    <Panel title={`Revision ${operation.revision} differs from ${publishedRevision}`}>
      {changes ? (
        <ul className="divide-y divide-line">
          {changes.slice(0, DIFFERENCES_MAX).map(difference => (
            <Row key={difference.path} difference={difference} />
          ))}
          {changes.length === 0 && (
            <li className="px-4 py-3 text-sm text-soft">No differences. Only the revision number is new.</li>
          )}
          {changes.length > DIFFERENCES_MAX && (
            <li className="px-4 py-3 text-sm text-soft">And in {changes.length - DIFFERENCES_MAX} more places.</li>
          )}
        </ul>
      ) : error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : (
        <LoadingRows contentLabel="the published revision" rows={2} />
      )}
    </Panel>
  );
}

const Row = ({ difference: { path, before, after } }: { readonly difference: Difference }) => (
  <li className="grid gap-1 px-4 py-2.5 text-xs">
    <p className="font-medium break-words">{path}</p>
    {before !== undefined && (
      <p className="break-words">
        <span className="text-soft">Published: </span>
        <del className="font-mono decoration-bad">{truncate(before)}</del>
      </p>
    )}
    {after !== undefined && (
      <p className="break-words">
        <span className="text-soft">Draft: </span>
        <ins className="font-mono no-underline">{truncate(after)}</ins>
      </p>
    )}
  </li>
);

const truncate = (text: string): string => (text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text);

const contentOf = ({
  revision: _revision,
  publishedRevision: _published,
  digest: _digest,
  status: _status,
  createdAt: _created,
  updatedAt: _updated,
  ...content
}: ConfiguredOperation): object => content;
