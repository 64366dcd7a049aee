/** The audit log: who changed what, when, with what outcome; newest first, filtered, page by page. */
import type { JSX } from 'preact';
import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import { Days, Hours, type Milliseconds, systemClock } from '../../../../../proto/clock.js';
import { changeText, whoText } from '../../../wording/audit-text.js';
import { type AuditEntry, gatewayApi } from '../../api/operator-gateway.js';
import { useKeys } from '../../app/keys.js';
import { type Route, routeTo } from '../../app/route.js';
import { setQuery } from '../../app/use-route.js';
import { Age } from '../../view/age.js';
import { Badge, Empty, type Tone, WhenLoaded } from '../../view/parts.js';
import { useAnswer } from '../../view/use-answer.js';

const PAGE_ENTRIES = 50;

/** The spans of the filter, by their text in the address. */
const SPANS: Readonly<Record<string, Milliseconds>> = {
  '1h': Hours(1),
  '24h': Days(1),
  '7d': Days(7),
  '30d': Days(30),
};

const OUTCOME_TONES: Readonly<Record<string, Tone>> = {
  done: 'good',
  refused: 'bad',
  failed: 'bad',
  begun: 'warn',
  unknown: 'warn',
};

export function AuditScreen({ route }: { readonly route: Route }): JSX.Element {
  const { since = '', action = '', object = '', merchant = '', cursor = '' } = route.query;
  const load = useCallback(() => {
    const span = SPANS[since];
    const sinceDate = span === undefined ? null : new Date(systemClock.now() - span).toISOString();
    return gatewayApi.audit({ since: sinceDate, action, object, merchant, cursor, limit: PAGE_ENTRIES });
  }, [since, action, object, merchant, cursor]);
  const entries = useAnswer(load);
  const isFiltered = [since, action, object, merchant].some((text) => text !== '');
  return (
    <section class="screen" aria-labelledby="audit-title">
      <header class="screen-head">
        <h1 id="audit-title">Audit</h1>
        <button type="button" class="quiet" onClick={entries.reload}>
          Reload
        </button>
      </header>
      <AuditFilter since={since} action={action} object={object} merchant={merchant} />
      <WhenLoaded loaded={entries}>
        {({ entries: shown, next_cursor: next }) => (
          <>
            {shown.length === 0 ? <NoEntries isFiltered={isFiltered} /> : <EntryTable entries={shown} />}
            <nav class="buttons" aria-label="Pages">
              {cursor !== '' && <a href={routeTo('audit', [], { ...route.query, cursor: '' })}>Newest</a>}
              {next !== null && <a href={routeTo('audit', [], { ...route.query, cursor: next })}>Older</a>}
            </nav>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

interface FilterProps {
  readonly since: string;
  readonly action: string;
  readonly object: string;
  readonly merchant: string;
}

/** The filter, which is in the address. A cursor belongs to one filter, so a change starts at the newest entry. */
function AuditFilter({ since, ...texts }: FilterProps): JSX.Element {
  const merchants = useAnswer(useCallback(gatewayApi.merchants, []));
  const first = useRef<HTMLInputElement>(null);
  useKeys(useMemo(() => ({ '/': () => first.current?.focus() }), []));
  const fields = [
    { name: 'action', title: 'Action', example: 'such as device.set' },
    { name: 'object', title: 'Object', example: 'MAC, name or id' },
    { name: 'merchant', title: 'Merchant', example: 'all' },
  ] as const;
  return (
    <search class="filters">
      {fields.map(({ name, title, example }) => (
        <label key={name}>
          <span>{title}</span>
          <input
            ref={name === 'action' ? first : null}
            type="search"
            name={name}
            list={`audit-${name}`}
            placeholder={example}
            value={texts[name]}
            onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim(), cursor: '' })}
          />
        </label>
      ))}
      <datalist id="audit-merchant">
        {merchants.answer?.merchants.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <label>
        <span>Since</span>
        <select
          name="since"
          value={since}
          onChange={(event) => setQuery({ since: event.currentTarget.value, cursor: '' })}
        >
          <option value="">the beginning</option>
          {Object.keys(SPANS).map((span) => (
            <option key={span} value={span}>
              {span} ago
            </option>
          ))}
        </select>
      </label>
    </search>
  );
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  if (!isFiltered) return <Empty title="Nothing was changed yet" />;
  const all = { since: '', action: '', object: '', merchant: '', cursor: '' };
  return (
    <Empty title="No change matches">
      <button type="button" onClick={() => setQuery(all)}>
        Show all changes
      </button>
    </Empty>
  );
}

function EntryTable({ entries }: { readonly entries: readonly AuditEntry[] }): JSX.Element {
  return (
    <section class="card scroll" aria-label="Changes">
      <table class="stacked">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">Action</th>
            <th scope="col">Object</th>
            <th scope="col">Outcome</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <EntryRows key={entry.id} entry={entry} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** An entry, and when it is opened, from where the change came and its states before and after. */
function EntryRows({ entry }: { readonly entry: AuditEntry }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { id, at, action, object, outcome, code, before, after, address, agent, ended_at } = entry;
  return (
    <>
      <tr>
        <td>
          <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? '▾' : '▸'} <Age date={at} clock="wall" />
          </button>
        </td>
        <td>{whoText(entry)}</td>
        <td class="mono">{action}</td>
        <td class="mono wrap">{object === '' ? '–' : object}</td>
        <td>
          <Badge tone={OUTCOME_TONES[outcome] ?? 'quiet'}>{outcome}</Badge>
          {code !== null && <span class="hint"> {code}</span>}
        </td>
        <td class="wrap prose">{changeText(entry)}</td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={6}>
            <p class="hint wrap">
              Entry {id}, at {at}
              {ended_at !== null && `, ended at ${ended_at}`}; from {address ?? 'this machine'}
              {agent !== null && ` with ${agent}`}
            </p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard */}
            <pre class="json" tabIndex={0}>
              {JSON.stringify({ before, after }, null, 2)}
            </pre>
          </td>
        </tr>
      )}
    </>
  );
}
