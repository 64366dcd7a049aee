/** The first screen: how many locks have which presence, and what is in trouble, each with the action that helps. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Days, Seconds } from '../../../../proto/clock.js';
import { useApi } from '../api/console-api.js';
import type { Page } from '../api/http.js';
import type { Backlog, Finding, Lock, Presence, WebhookUrl } from '../api/shapes.js';
import { routeTo } from '../app/route.js';
import { runClock } from '../app/run-clock.js';
import { useLive } from '../live/use-live.js';
import { Age } from '../view/age.js';
import { Action, Badge, Failure, lockName, NoLocks, PresenceBadge, TroubleBadge } from '../view/parts.js';
import { Sentence } from '../view/sentence.js';
import { spanText } from '../view/time-text.js';
import { useAnswer } from '../view/use-answer.js';
import { FindingTable } from './lock/past-tables.js';
import { WhyPanel } from './lock/why-panel.js';

/** The maximum number of locks in trouble that are listed here; the list of locks has all. */
const MAX_SHOWN = 50;
const PRESENCES: readonly Presence[] = ['online', 'asleep', 'late', 'low-battery', 'airplane', 'never-seen'];

export function NowScreen(): JSX.Element {
  const { locks, state, version } = useLive();
  const api = useApi();
  const webhooks = useAnswer(api.webhooks, Seconds(10));
  const failing = webhooks.answer?.data.filter(isInTrouble) ?? [];
  const troubled = useMemo(() => locks.sorted.filter(({ trouble }) => trouble !== 'none'), [locks, version]);
  const hasNone = locks.size === 0 && state === 'live';
  return (
    <section class="screen" aria-labelledby="now-title">
      <header class="screen-head">
        <h1 id="now-title">Now</h1>
      </header>
      {!hasNone && <PresenceCounts locks={locks.sorted} />}
      {api.gatewayTroubles !== undefined && <GatewayTroubles ask={api.gatewayTroubles} />}
      {failing.map((url) => (
        <UrlTrouble key={url.id} url={url} onChange={webhooks.reload} />
      ))}
      <div class="pair">
        {hasNone ? <NoLocks /> : <LocksInTrouble locks={troubled} />}
        <div>
          <NewFindings ask={api.newestFindings} />
        </div>
      </div>
    </section>
  );
}

function PresenceCounts({ locks }: { readonly locks: readonly Lock[] }): JSX.Element {
  const counts = new Map<string, number>();
  for (const { presence } of locks) counts.set(presence, (counts.get(presence) ?? 0) + 1);
  return (
    <ul class="figures" aria-label="Locks by presence">
      {PRESENCES.map((presence) => (
        <li key={presence}>
          <a href={routeTo('locks', [], { presence })}>
            <strong>{(counts.get(presence) ?? 0).toLocaleString('en-US')}</strong>
            <span>{presence.replaceAll('-', ' ')}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function LocksInTrouble({ locks }: { readonly locks: readonly Lock[] }): JSX.Element {
  if (locks.length === 0) return <p class="card good">✓ No lock needs attention.</p>;
  return (
    <section class="card" aria-label="Locks in trouble">
      <h2>{locks.length === 1 ? '1 lock needs' : `${locks.length.toLocaleString('en-US')} locks need`} attention</h2>
      <table class="stacked">
        <tbody>
          {locks.slice(0, MAX_SHOWN).map((lock) => (
            <tr key={lock.mac_addr}>
              <td>
                <TroubleBadge lock={lock} />
              </td>
              <td>
                <a href={routeTo('lock', [lock.mac_addr])}>{lockName(lock)}</a>{' '}
                <span class="hint">{lock.merchant}</span>
              </td>
              <td>
                <PresenceBadge lock={lock} />
              </td>
              <td>
                <Age date={lock.received_at} />
              </td>
              <td>
                <a href={routeTo('lock', [lock.mac_addr])}>{HELP[lock.trouble] ?? 'See why'}</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {locks.length > MAX_SHOWN && <a href={routeTo('locks')}>All locks</a>}
    </section>
  );
}

/** The text of the link to the lock, by its trouble. */
const HELP: Readonly<Record<string, string>> = { theft: 'Follow it', late: 'See why it is late' };

function isInTrouble({ state, failing_since }: WebhookUrl): boolean {
  return state !== 'active' || failing_since !== null;
}

function UrlTrouble({ url, onChange }: { readonly url: WebhookUrl; readonly onChange: () => void }): JSX.Element {
  const api = useApi();
  const { id, name, merchant, state, disabled_why, failing_since, backlog, figures } = url;
  const recover = (): Promise<void> => api.recover(id).then(onChange);
  return (
    <p class="card">
      <Badge tone="bad">{state === 'active' ? 'failing' : state}</Badge>{' '}
      <a href={routeTo('deliveries', [String(id)])}>{name}</a> <span class="hint">{merchant}</span>{' '}
      {failing_since !== null && (
        <>
          since <Age date={failing_since} clock="wall" />
        </>
      )}{' '}
      <span class="hint">
        {backlog && backlogText(backlog)} {disabled_why ?? figures?.last_error?.error}
      </span>{' '}
      {state === 'active' && <Action act={recover}>Send what is due again</Action>}
    </p>
  );
}

function backlogText({ behind, pending, oldest_seconds }: Backlog): string {
  const waiting = behind + pending;
  if (waiting === 0) return '';
  const oldest = oldest_seconds === null ? '' : `, the oldest for ${spanText(Seconds(oldest_seconds))}`;
  return `${waiting.toLocaleString('en-US')} events wait${oldest}`;
}

/** What is wrong with the gateway itself; nothing if nothing is. */
function GatewayTroubles({ ask }: { readonly ask: () => Promise<readonly string[]> }): JSX.Element {
  const { answer, failure } = useAnswer(ask, Seconds(10));
  return (
    <>
      <Failure failure={failure} />
      {answer?.map((sentence) => (
        <p key={sentence} class="card">
          <Badge tone="bad">gateway</Badge> <Sentence text={sentence} />
        </p>
      ))}
    </>
  );
}

/** The findings of the last day, each with its explanation. */
function NewFindings({ ask }: { readonly ask: () => Promise<Page<Finding>> }): JSX.Element {
  const { answer, failure } = useAnswer(ask, Seconds(10));
  const [whyId, setWhyId] = useState<string | null>(null);
  const sinceMs = runClock.now() - Days(1);
  const { data = [], next_cursor = null } = answer ?? {};
  const findings = data.filter(({ at }) => Date.parse(at) > sinceMs);
  return (
    <>
      <Failure failure={failure} />
      <FindingTable
        title="Findings of the last 24 hours"
        namesLocks
        findings={findings}
        hasMore={next_cursor !== null && findings.length === data.length}
        onWhy={setWhyId}
      />
      {whyId !== null && <WhyPanel key={whyId} id={whyId} onClose={() => setWhyId(null)} />}
    </>
  );
}
