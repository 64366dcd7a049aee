/** The filter of the live events. It is in the address, so that a reader can share it. */
import type { JSX, RefObject } from 'preact';
import { REASONS } from '../../../../../proto/wire/reasons.js';
import { EVENT_KINDS } from '../../../wording/event-text.js';
import { setQuery } from '../../app/use-route.js';
import type { TailFilter } from '../../live/tail-filter.js';

interface LiveFilterProps {
  readonly filter: TailFilter;
  readonly merchants: readonly { readonly name: string }[];
  readonly searchField: RefObject<HTMLInputElement | null>;
}

export function LiveFilter({ filter, merchants, searchField }: LiveFilterProps): JSX.Element {
  return (
    <search class="filters">
      <label>
        <span>Words</span>
        <input
          ref={searchField}
          type="search"
          placeholder="Search ( / )"
          value={filter.search}
          onInput={(event) => setQuery({ search: event.currentTarget.value })}
        />
      </label>
      <label>
        <span>Lock</span>
        <input
          type="search"
          name="lock"
          placeholder="MAC or name"
          value={filter.lock}
          onInput={(event) => setQuery({ lock: event.currentTarget.value })}
        />
      </label>
      <Choice name="merchant" title="Merchant" value={filter.merchant} options={merchants.map(({ name }) => [name])} />
      <Choice name="kind" title="Kind" value={filter.kind} options={EVENT_KINDS.map((kind) => [kind])} />
      <Choice
        name="reason"
        title="Reason"
        value={filter.reason}
        options={REASONS.map(({ name, meaning }) => [name, meaning])}
      />
    </search>
  );
}

interface ChoiceProps {
  /** The member of the address. */
  readonly name: string;
  readonly title: string;
  readonly value: string;
  /** Each value, and what it means. */
  readonly options: readonly (readonly [value: string, meaning?: string])[];
}

/** A choice with `all`. A value of the address that is no option is shown too. */
function Choice({ name, title, value, options }: ChoiceProps): JSX.Element {
  const isUnknown = value !== '' && !options.some(([each]) => each === value);
  return (
    <label>
      <span>{title}</span>
      <select name={name} value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {isUnknown && <option value={value}>{value}</option>}
        {options.map(([each, meaning]) => (
          <option key={each} value={each} title={meaning}>
            {each.replace('REASON_', '')}
          </option>
        ))}
      </select>
    </label>
  );
}
