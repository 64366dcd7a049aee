/** The search field of a list. The page's address has the words as `search`; the key `/` moves the focus to it. */
import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { useKeys } from '../app/keys.js';
import { setQuery } from '../app/use-route.js';

interface SearchFieldProps {
  /** What is searched, for screen readers. */
  readonly label: string;
  readonly search: string;
}

export function SearchField({ label, search }: SearchFieldProps): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useKeys(useMemo(() => ({ '/': () => field.current?.focus() }), []));
  return (
    <label>
      <span class="hidden">{label}</span>
      <input
        ref={field}
        type="search"
        placeholder="Search ( / )"
        value={search}
        onInput={(event) => setQuery({ search: event.currentTarget.value })}
      />
    </label>
  );
}
