// Shows new recovery codes, which cannot be shown again.
import { SecretDialog } from '../ui/reveal.tsx';

export const RecoveryCodesDialog = ({
  codes,
  close,
}: {
  readonly codes: readonly string[];
  readonly close: () => void;
}) => <SecretDialog title="Recovery codes" secret={codes.join('\n')} secretKind="recovery codes" close={close} />;
