// Form fields: a label, a native control, and a hint.
import { type ComponentProps, type ReactNode, useId } from 'react';

const CONTROL =
  'w-full rounded-md border border-line-strong bg-raised px-2.5 text-sm text-ink h-9 md:h-8 disabled:opacity-60 aria-invalid:border-bad';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
}

export function TextField({ label, hint, className = '', ...rest }: FieldProps & ComponentProps<'input'>) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} className={className}>
      <input id={id} className={CONTROL} aria-describedby={hint ? `${id}-hint` : undefined} {...rest} />
    </Labelled>
  );
}

export function SelectField({ label, hint, className = '', children, ...rest }: FieldProps & ComponentProps<'select'>) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} className={className}>
      <select id={id} className={CONTROL} aria-describedby={hint ? `${id}-hint` : undefined} {...rest}>
        {children}
      </select>
    </Labelled>
  );
}

export function CheckField({ label, hint, className = '', ...rest }: FieldProps & ComponentProps<'input'>) {
  const id = useId();
  return (
    <div className={`flex gap-2.5 ${className}`}>
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 size-4 shrink-0 accent-accent"
        aria-describedby={hint ? `${id}-hint` : undefined}
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
      </div>
    </div>
  );
}

const Labelled = ({
  id,
  label,
  hint,
  className,
  children,
}: FieldProps & { readonly id: string; readonly className: string; readonly children: ReactNode }) => (
  <div className={`min-w-0 ${className}`}>
    <label htmlFor={id} className="mb-1 block text-sm font-medium">
      {label}
    </label>
    {children}
    {hint && (
      <p id={`${id}-hint`} className="mt-1 text-xs text-soft">
        {hint}
      </p>
    )}
  </div>
);
