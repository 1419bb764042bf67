// Filters for lists, as select elements in which each value has a label.
import { Choice } from '../ui/choice.tsx';
import { SINCE_FILTERS } from './session-filters.ts';

interface Props {
  readonly label: string;
  readonly value: string | undefined;
  readonly choose: (value: string) => void;
  readonly any: string;
  readonly onPointerOrFocus?: () => void;
  /** Each value with its label. */
  readonly words: ReadonlyArray<readonly [value: string, word: string]>;
}

export const WordChoice = ({ words, ...choice }: Props) => (
  <Choice {...choice}>
    {words.map(([value, word]) => (
      <option key={value} value={value}>
        {word}
      </option>
    ))}
  </Choice>
);

const SINCE_CHOICES = Object.entries(SINCE_FILTERS).map(([since, { name }]) => [since, name] as const);

export const SinceChoice = (props: Pick<Props, 'value' | 'choose'>) => (
  <WordChoice label="When" any="Any time" words={SINCE_CHOICES} {...props} />
);
