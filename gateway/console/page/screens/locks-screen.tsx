/** All locks in a list that follows the gateway: searched and filtered in the page, trouble first. */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Lock } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { setQuery } from '../app/use-route.js';
import { useLive } from '../live/use-live.js';
import { Age } from '../view/age.js';
import { Empty, lockName, NoLocks, PresenceBadge, TroubleBadge } from '../view/parts.js';
import { SearchField } from '../view/search-field.js';
import { VirtualList } from '../view/virtual-list.js';

const ROW_PIXELS = 40;

export function LocksScreen({ route }: { readonly route: Route }): JSX.Element {
  const { locks, state, version } = useLive();
  const { search = '', presence = '' } = route.query;
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return locks.sorted.filter((lock) => (presence === '' || lock.presence === presence) && matches(lock, words));
  }, [locks, version, search, presence]);
  return (
    <section class="screen fill" aria-labelledby="locks-title">
      <header class="screen-head">
        <h1 id="locks-title">Locks</h1>
        <SearchField label="Search by name, MAC or label" search={search} />
        <label>
          Presence{' '}
          <select value={presence} onChange={(event) => setQuery({ presence: event.currentTarget.value })}>
            <option value="">all</option>
            {['online', 'asleep', 'late', 'low-battery', 'airplane', 'never-seen'].map((each) => (
              <option key={each} value={each}>
                {each.replaceAll('-', ' ')}
              </option>
            ))}
          </select>
        </label>
        <span class="hint">
          {shown.length.toLocaleString('en-US')} of {locks.size.toLocaleString('en-US')}
        </span>
      </header>
      {shown.length === 0 ? (
        <NoMatch hasLocks={locks.size > 0} isLoading={state === 'connecting'} />
      ) : (
        <VirtualList
          items={shown}
          rowPixels={ROW_PIXELS}
          keyOf={({ mac_addr }) => mac_addr}
          label="Locks"
          onOpen={({ mac_addr }) => {
            location.hash = routeTo('lock', [mac_addr]);
          }}
          row={lockRow}
        />
      )}
    </section>
  );
}

function NoMatch({ hasLocks, isLoading }: { readonly hasLocks: boolean; readonly isLoading: boolean }): JSX.Element {
  if (isLoading) return <p class="hint">Loading …</p>;
  if (!hasLocks) return <NoLocks />;
  return (
    <Empty title="No lock matches">
      <button type="button" onClick={() => setQuery({ search: '', presence: '' })}>
        Show all locks
      </button>
    </Empty>
  );
}

/** The same function for every draw of the list, so that unchanged rows are not drawn again. */
function lockRow(lock: Lock): JSX.Element {
  return <LockRow lock={lock} />;
}

function LockRow({ lock }: { readonly lock: Lock }): JSX.Element {
  return (
    <span class="lock-row">
      <span class="lock-name">
        <strong>{lockName(lock)}</strong> <span class="hint">{lock.merchant}</span>
      </span>
      <span class="mono lock-mac">{lock.name === null ? '' : lock.mac_addr}</span>
      <span class="lock-trouble">
        <TroubleBadge lock={lock} />
      </span>
      <span class="lock-presence">
        <PresenceBadge lock={lock} />
      </span>
      <span>{lock.power_state ?? ''}</span>
      <span>{lock.lock_state ?? ''}</span>
      <span class="number">{lock.battery_percent === null ? '' : `${Math.round(lock.battery_percent)} %`}</span>
      <span class="lock-age">
        <Age date={lock.received_at} />
      </span>
    </span>
  );
}

/** Whether each word is part of the lock's name, MAC, merchant, or a label. */
function matches({ name, mac_addr, labels, merchant = '' }: Lock, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = `${name ?? ''} ${mac_addr} ${merchant} ${Object.entries(labels).flat().join(' ')}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
