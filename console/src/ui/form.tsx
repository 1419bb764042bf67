// Form fields: a label, a native control, and a hint.
import { type ComponentProps, type ReactNode, useId } from 'react';

const CONTROL_CLASS =
  'w-full rounded-md border border-line-strong bg-raised px-2.5 text-sm text-ink h-9 md:h-8 disabled:opacity-60 aria-invalid:border-bad';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with the value. */
  readonly problem?: string | undefined;
}

const ariaProps = (id: string, { hint, problem }: Pick<FieldProps, 'hint' | 'problem'>) => ({
  'aria-describedby': [problem && `${id}-problem`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined,
  'aria-invalid': problem ? true : undefined,
});

export function TextField({ label, hint, problem, className = '', ...rest }: FieldProps & ComponentProps<'input'>) {
  const id = useId();
  return (
    <LabelledField {...{ id, label, hint, problem, className }}>
      <input id={id} className={CONTROL_CLASS} {...ariaProps(id, { hint, problem })} {...rest} />
    </LabelledField>
  );
}

export function SelectField({
  label,
  hint,
  problem,
  className = '',
  children,
  ...rest
}: FieldProps & ComponentProps<'select'>) {
  const id = useId();
  return (
    <LabelledField {...{ id, label, hint, problem, className }}>
      <select id={id} className={CONTROL_CLASS} {...ariaProps(id, { hint, problem })} {...rest}>
        {children}
      </select>
    </LabelledField>
  );
}

export function CheckField({ label, hint, problem, className = '', ...rest }: FieldProps & ComponentProps<'input'>) {
  const id = useId();
  return (
    <div className={`flex gap-2.5 ${className}`}>
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 size-4 shrink-0 accent-accent"
        {...ariaProps(id, { hint, problem })}
        {...rest}
      />
      <div>
        <label htmlFor={id} className="block text-sm font-medium">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-sm text-soft">
            {hint}
          </p>
        )}
        <FieldProblem {...{ id, problem }} />
      </div>
    </div>
  );
}

const LabelledField = ({
  id,
  label,
  hint,
  problem,
  className,
  children,
}: FieldProps & { readonly id: string; readonly className: string; readonly children: ReactNode }) => (
  <div className={`min-w-0 ${className}`}>
    <label htmlFor={id} className="mb-1 block text-sm font-medium">
      {label}
    </label>
    {children}
    <FieldProblem {...{ id, problem }} />
    {hint && (
      <p id={`${id}-hint`} className="mt-1 text-xs text-soft">
        {hint}
      </p>
    )}
  </div>
);

const FieldProblem = ({ id, problem }: { readonly id: string; readonly problem: string | undefined }) =>
  problem ? (
    <p id={`${id}-problem`} className="mt-1 text-xs break-words text-bad">
      {problem}
    </p>
  ) : null;
