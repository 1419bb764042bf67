// A button that opens a file chooser and passes the file on as form data.
import { type ChangeEvent, useRef } from 'react';
import { Button } from './button.tsx';

export function FileButton({
  label,
  accept,
  busy,
  onFile,
}: {
  readonly label: string;
  readonly accept?: string;
  readonly busy: boolean;
  readonly onFile: (form: FormData) => void;
}) {
  const fileInput = useRef<HTMLInputElement>(null);
  const onFileChosen = (event: ChangeEvent<HTMLInputElement>): void => {
    const file = event.target.files?.[0];
    event.target.value = '';
    if (!file) return;
    const form = new FormData();
    form.append('file', file);
    onFile(form);
  };
  return (
    <>
      <Button look="primary" icon="plus" busy={busy} onClick={() => fileInput.current?.click()}>
        {label}
      </Button>
      <input
        ref={fileInput}
        type="file"
        accept={accept}
        aria-label={label}
        className="hidden"
        onChange={onFileChosen}
      />
    </>
  );
}
