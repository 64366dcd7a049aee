/** A button that opens a field for another name. Enter saves, Escape closes the field. The caller shows the name. */
import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.js';
import { Failure } from './parts.js';
import { asFailure } from './use-answer.js';

interface RenameProps {
  readonly name: string;
  /** The gateway's limit for such a name. */
  readonly maxChars: number;
  /** Makes the call. A rejection is shown beside the field. */
  readonly save: (name: string) => Promise<unknown>;
}

export function Rename({ name, maxChars, save }: RenameProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), [isOpen]);
  const open = (is: boolean): void => {
    setOpen(is);
    setFailure(null);
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    save(field.current?.value ?? '').then(
      () => open(false),
      (error: unknown) => setFailure(asFailure(error)),
    );
  };
  if (!isOpen)
    return (
      <button type="button" class="quiet" aria-label={`Rename ${name}`} title="Rename" onClick={() => open(true)}>
        ✎
      </button>
    );
  return (
    <form class="inline-form" onSubmit={submit} onKeyDown={({ key }) => key === 'Escape' && open(false)}>
      <input ref={field} aria-label="New name" defaultValue={name} maxLength={maxChars} />
      <button type="submit">Save</button>
      <Failure failure={failure} />
    </form>
  );
}
