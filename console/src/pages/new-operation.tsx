// The page that creates an operation from an example.
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Icon } from '../ui/icon.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, LoadingRows } from '../ui/states.tsx';
import { OperationEditor } from './operation-editor.tsx';
import { EXAMPLES, type OperationExample } from './operation-examples.ts';

export function NewOperationPage({ app }: { readonly app: string }) {
  const [example, setExample] = useState<OperationExample | undefined>();
  const role = useRole(app);
  const navigate = useNavigate();
  return (
    <Page
      title="New operation"
      above={<BackToOperations app={app} />}
      about="Start from the closest example and change it. An operation cannot be called before it is published."
    >
      {role === undefined ? (
        <Panel>
          <LoadingRows contentLabel="your role" rows={2} />
        </Panel>
      ) : !isAtLeast(role, 'developer') ? (
        <Panel>
          <EmptyState icon="operations" title="You can view operations, but not create them">
            Creating operations requires the developer role. Ask an admin or owner of the application for it.
          </EmptyState>
        </Panel>
      ) : (
        <div className="grid max-w-4xl gap-5">
          <fieldset className="grid gap-3 @min-[620px]:grid-cols-2 @min-[1000px]:grid-cols-4">
            <legend className="sr-only">Examples</legend>
            {EXAMPLES.map(one => (
              <button
                key={one.id}
                type="button"
                aria-pressed={one === example}
                onClick={() => setExample(one)}
                className="rounded-lg border border-line-strong bg-raised p-3 text-left transition-colors hover:bg-sunk aria-pressed:border-accent aria-pressed:bg-accent-soft"
              >
                <span className="block text-sm font-medium">{one.name}</span>
                <span className="mt-0.5 block text-xs text-soft">{one.about}</span>
              </button>
            ))}
          </fieldset>
          {example ? (
            <OperationEditor
              key={example.id}
              app={app}
              initialContent={example}
              mayWrite
              onOperationSaved={({ id }) => void navigate({ to: '/a/$app/operations/$id', params: { app, id } })}
            />
          ) : (
            <p className="text-sm text-soft">Choose an example to see its form.</p>
          )}
        </div>
      )}
    </Page>
  );
}

export const BackToOperations = ({ app }: { readonly app: string }) => (
  <Link
    to="/a/$app/operations"
    params={{ app }}
    className="mb-2 -ml-1 inline-flex h-8 items-center gap-1 rounded pr-2 text-sm text-soft hover:text-ink"
  >
    <Icon name="back" size={16} />
    Operations
  </Link>
);
