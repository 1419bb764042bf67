// Shows how much of a limit is used.
export const Meter = ({
  label,
  used,
  limit,
  unit = '',
}: {
  readonly label: string;
  readonly used: number;
  readonly limit: number;
  readonly unit?: string;
}) => {
  const share = limit > 0 ? Math.min(1, used / limit) : used > 0 ? 1 : 0;
  return (
    <div className="px-4 py-3">
      <div className="mb-1.5 flex items-baseline justify-between gap-3">
        <span className="text-sm text-soft">{label}</span>
        <span className="text-sm font-medium tabular-nums">
          {used}
          <span className="font-normal text-soft">
            {' '}
            of {limit}
            {unit}
          </span>
        </span>
      </div>
      <meter className="sr-only" min={0} max={Math.max(limit, 1)} value={Math.min(used, Math.max(limit, 1))}>
        {label}: {used} of {limit}
      </meter>
      <div aria-hidden="true" className="h-1.5 overflow-hidden rounded-full bg-sunk">
        <div
          className={`h-full rounded-full ${share >= 1 ? 'bg-warn' : 'bg-accent'}`}
          style={{ width: `${share * 100}%` }}
        />
      </div>
    </div>
  );
};
