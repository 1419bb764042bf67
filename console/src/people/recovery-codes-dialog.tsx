// Shows new recovery codes, which cannot be shown again.
import { Reveal } from '../ui/reveal.tsx';

export const RecoveryCodesDialog = ({
  codes,
  close,
}: {
  readonly codes: readonly string[];
  readonly close: () => void;
}) => <Reveal title="Recovery codes" secret={codes.join('\n')} what="recovery codes" close={close} />;
