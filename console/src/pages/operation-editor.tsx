// The form of an operation of the application: saves a new revision, and publishes it.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import type { Issue } from '../../../contract/common.ts';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { canonicalJson } from '../json/differences.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/form.tsx';
import { FormError } from '../ui/states.tsx';
import { DraftError, draftOf, type OperationDraft, type Problem, problemsOf, requestOf } from './operation-draft.ts';
import { AboutFields, BrowserFields, DataFields, HttpFields, LimitFields } from './operation-fields.tsx';

export function OperationEditor({
  app,
  operation,
  initialContent,
  mayWrite,
  onOperationSaved,
}: {
  readonly app: string;
  /** Absent for a new operation. */
  readonly operation?: ConfiguredOperation;
  /** The initial content of a new operation. */
  readonly initialContent?: { readonly id: string; readonly draft: OperationDraft };
  readonly mayWrite: boolean;
  readonly onOperationSaved: (operation: ConfiguredOperation) => void;
}) {
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [baseOperation, setBaseOperation] = useState(operation);
  const [id, setId] = useState(operation?.id ?? initialContent?.id ?? '');
  const [draft, setDraft] = useState(
    () => (operation ? draftOf(operation) : initialContent?.draft) ?? throwMissingContent(),
  );
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const work = useMutation({
    mutationFn: async (shouldPublish: boolean) => {
      setProblems([]);
      const params = { appId: app, id: id.trim() };
      const savedOperation = await call('configureOperation', {
        params,
        ...(baseOperation ? { headers: { 'if-match': `"${baseOperation.revision}"` } } : {}),
        body: requestOf(draft),
      });
      setBaseOperation(savedOperation);
      // Keeps changes that were made while the request was running.
      setDraft(current => (current === draft ? draftOf(savedOperation) : current));
      return shouldPublish ? call('publishOperation', { params }) : savedOperation;
    },
    onError: error => setProblems(problemsIn(error, draft)),
    onSuccess: onOperationSaved,
    onSettled: () => client.invalidateQueries({ queryKey: ['operations', app] }),
  });
  useEffect(() => {
    if (problems.length > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [problems]);
  const change = (changes: Partial<OperationDraft>): void => {
    setDraft({ ...draft, ...changes });
    // The problems of changed fields are removed, because the API has not checked the new contents.
    const remainingProblems = problems.filter(({ field }) => field === undefined || !Object.hasOwn(changes, field));
    if (remainingProblems.length < problems.length) setProblems(remainingProblems);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    work.mutate(false);
  };
  const isChanged = !baseOperation || isDirty(draft, baseOperation);
  const fieldsProps = { app, draft, change, problems, isLocked: !mayWrite };
  return (
    <form
      ref={form}
      onSubmit={submit}
      className="@container grid min-w-0 gap-5 [&_:is(input,select,textarea,button)]:scroll-mb-40"
    >
      <AboutFields {...fieldsProps}>
        {!operation && (
          <TextField
            label="Id"
            hint="Agents call the operation by this id, for example orders.read. It cannot be changed later."
            value={id}
            onChange={event => setId(event.target.value)}
            problem={problems.find(({ field }) => field === 'id')?.message}
            maxLength={64}
            spellCheck={false}
            autoCapitalize="none"
            required
          />
        )}
      </AboutFields>
      {draft.kind === 'http' ? <HttpFields {...fieldsProps} /> : <BrowserFields {...fieldsProps} />}
      <DataFields {...fieldsProps} />
      <LimitFields {...fieldsProps} />
      {mayWrite && (isChanged || work.isSuccess || work.isError) && (
        <div className="sticky bottom-0 z-10 grid gap-3 rounded-lg border border-line bg-raised p-3 shadow-lg">
          <FormError error={work.error} />
          <div className="flex flex-wrap items-center gap-2">
            <Button
              look="primary"
              busy={work.isPending}
              disabled={!isChanged}
              onClick={() => form.current?.reportValidity() && work.mutate(true)}
            >
              Save and publish
            </Button>
            <Button type="submit" busy={work.isPending} disabled={!isChanged}>
              Save as draft
            </Button>
            <p role="status" className="text-sm text-soft">
              {isChanged ? (baseOperation ? 'Not saved yet.' : '') : work.isSuccess ? 'Saved.' : ''}
            </p>
          </div>
        </div>
      )}
    </form>
  );
}

function throwMissingContent(): never {
  throw new Error('the editor needs an operation or an initial draft');
}

function isDirty(draft: OperationDraft, base: ConfiguredOperation): boolean {
  try {
    return canonicalJson(requestOf(draft)) !== canonicalJson(requestOf(draftOf(base)));
  } catch (error) {
    if (error instanceof DraftError) return true;
    throw error;
  }
}

function problemsIn(error: unknown, draft: OperationDraft): readonly Problem[] {
  if (error instanceof DraftError) return error.problems;
  if (!(error instanceof ApiError) || !Array.isArray(error.details.issues)) return [];
  return problemsOf(error.details.issues as Issue[], draft); // The contract defines the type of `issues`.
}
