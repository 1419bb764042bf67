// The number of items that are waiting for the user, shown beside a name.
export const WaitingMark = ({ count }: { readonly count: number }) =>
  count === 0 ? null : (
    <span className="ml-auto rounded-full bg-accent px-1.5 py-px text-xs leading-4 font-semibold text-on-accent tabular-nums">
      {count > 99 ? '99+' : count}
      <span className="sr-only"> waiting for you</span>
    </span>
  );
