// The settings of a built-in operation that an application can change. Changes take effect at once.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { call } from '../api/call.ts';
import { Button } from '../ui/button.tsx';
import { CheckField, SelectField, TextField } from '../ui/form.tsx';
import { Panel } from '../ui/page.tsx';
import { FormError } from '../ui/states.tsx';
import { MICRO_CREDITS_PER_CREDIT } from './operation-draft.ts';
import { Options } from './operation-fields.tsx';
import { APPROVAL_WORDS, keyIn } from './operation-words.tsx';

export function BuiltInOperation({
  app,
  operation,
  mayWrite,
  mayRelax,
}: {
  readonly app: string;
  readonly operation: ConfiguredOperation;
  readonly mayWrite: boolean;
  /** Whether the person may raise the price and weaken the required approval. */
  readonly mayRelax: boolean;
}) {
  const client = useQueryClient();
  const [isEnabled, setIsEnabled] = useState(operation.enabled ?? true);
  const [approval, setApproval] = useState(operation.approval);
  const [price, setPrice] = useState(String(operation.price.microCredits / MICRO_CREDITS_PER_CREDIT));
  const microCredits = Math.round(Number(price) * MICRO_CREDITS_PER_CREDIT);
  const work = useMutation({
    mutationFn: () =>
      call('configureOperation', {
        params: { appId: app, id: operation.id },
        headers: { 'if-match': `"${operation.revision}"` },
        body: { enabled: isEnabled, approval, price: { microCredits } },
      }),
    onSettled: () => client.invalidateQueries({ queryKey: ['operations', app] }),
  });
  const isChanged =
    isEnabled !== (operation.enabled ?? true) ||
    approval !== operation.approval ||
    microCredits !== operation.price.microCredits;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    work.mutate();
  };
  return (
    <Panel title="For this application">
      <form onSubmit={submit} className="grid gap-4 p-4">
        <CheckField
          label="Agents may call it"
          hint="If their key has a grant for the operation."
          disabled={!mayWrite}
          checked={isEnabled}
          onChange={event => setIsEnabled(event.target.checked)}
        />
        <SelectField
          label="Who approves each call"
          disabled={!mayWrite}
          value={approval}
          onChange={event => setApproval(keyIn(APPROVAL_WORDS, event.target.value, 'none'))}
        >
          <Options words={APPROVAL_WORDS} />
        </SelectField>
        <TextField
          label="Price of a call in credits"
          hint="Added to the cost of time and traffic. Charged only for a successful call, if this installation charges credit."
          type="number"
          min={0}
          step="any"
          disabled={!mayWrite}
          value={price}
          onChange={event => setPrice(event.target.value)}
        />
        <FormError error={work.error} />
        {mayWrite && (
          <div className="flex flex-wrap items-center gap-3">
            <Button type="submit" look="primary" busy={work.isPending} disabled={!isChanged}>
              Save
            </Button>
            <p role="status" className="text-sm text-soft">
              {work.isSuccess && !isChanged
                ? 'Saved. The change is in effect.'
                : mayRelax
                  ? ''
                  : 'A higher price or a weaker approval requires the admin role.'}
            </p>
          </div>
        )}
      </form>
    </Panel>
  );
}
