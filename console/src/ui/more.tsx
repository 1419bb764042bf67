// The button below a list that loads the next page of the list. Shown only if there is one.
import { Button } from './button.tsx';

export const LoadMore = ({
  list: { hasNextPage, isFetchingNextPage, fetchNextPage },
  buttonText: label,
}: {
  readonly list: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  };
  readonly buttonText: string;
}) =>
  hasNextPage ? (
    <Button className="mt-4" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
      {label}
    </Button>
  ) : null;
