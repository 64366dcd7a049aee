/**
 * One lock: how it is, a timeline of what it did and what the model allows, commands with the count-down of their
 * expiry, wanted beside reported settings, its pings and its findings, each with its `why`.
 */

import type { JSX } from 'preact';
import { useCallback, useMemo, useState } from 'preact/hooks';
import { Days, Minutes } from '../../../../proto/clock.js';
import { merchantApi } from '../api/merchant.js';
import type { Command, Finding, LockDetail, Ping } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { runClock } from '../app/run-clock.js';
import { useLive } from '../live/use-live.js';
import { type LockPast, lockTimeline } from '../timeline/lock-timeline.js';
import { Timeline } from '../timeline/timeline.js';
import { Age } from '../view/age.js';
import { Badge, CopyButton, Empty, lockName, PresenceBadge, TroubleBadge, WhenLoaded } from '../view/parts.js';
import { localTimeText } from '../view/time-text.js';
import { useAnswer } from '../view/use-answer.js';
import { CommandPanel } from './lock/command-panel.js';
import { TwinTable } from './lock/twin-table.js';
import { WhyPanel } from './lock/why-panel.js';

/** The time that the timeline covers if the address does not say. */
const DEFAULT_DAYS = 2;
/** A lock that was heard for the first time lately has a shorter timeline, but none shorter than this. */
const MIN_SHOWN = Minutes(10);
const BEFORE_FIRST_PING = Minutes(1);
/** The maximum number of pings, commands and findings that are loaded. */
const MAX_LOADED = 1000;

export function LockScreen({ route }: { readonly route: Route }): JSX.Element {
  const [mac = ''] = route.parts;
  const live = useLive().locks.find(mac);
  // A change of the live lock loads the rest again.
  const version = live?.received_at ?? '';
  const detail = useAnswer(useCallback(() => merchantApi.lock(mac), [mac, version]));
  const [whyId, setWhyId] = useState<string | null>(null);
  if (mac === '') return <Empty title="Which lock?" />;
  return (
    <section class="screen" aria-labelledby="lock-title">
      <WhenLoaded loaded={detail}>
        {(lock) => (
          <>
            <LockHead lock={lock} />
            <LockHistory mac={mac} version={version} days={daysOf(route)} onWhy={setWhyId} />
            {whyId !== null && <WhyPanel id={whyId} onClose={() => setWhyId(null)} />}
            <div class="columns">
              <CommandPanel mac={mac} version={version} onWhy={setWhyId} />
              <TwinTable lock={lock} />
            </div>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

function daysOf({ query }: Route): number {
  const days = Number(query.days);
  return days > 0 && days <= 90 ? days : DEFAULT_DAYS;
}

function LockHead({ lock }: { readonly lock: LockDetail }): JSX.Element {
  const { mac_addr, name, lock_state, battery_percent, firmware_version, received_at, believed } = lock;
  return (
    <header class="screen-head">
      <h1 id="lock-title">{lockName(lock)}</h1>
      {name !== null && <span class="mono hint">{mac_addr}</span>}
      <TroubleBadge lock={lock} />
      <PresenceBadge lock={lock} />
      <span>
        {believed?.power_state ?? '–'}
        {believed?.is_doubtful === true && (
          <span title="The lock dropped messages: its state may have changed."> ?</span>
        )}
      </span>
      <span>{lock_state ?? '–'}</span>
      {battery_percent !== null && <span>{Math.round(battery_percent)} %</span>}
      {firmware_version !== null && <span class="hint">firmware {firmware_version}</span>}
      <span class="hint">
        heard <Age date={received_at} />
      </span>
      <CopyButton label="Copy as CLI" text={`lockgate device show ${mac_addr}`} />
    </header>
  );
}

interface HistoryProps {
  readonly mac: string;
  readonly version: string;
  readonly days: number;
  readonly onWhy: (id: string) => void;
}

function LockHistory({ mac, version, days, onWhy }: HistoryProps): JSX.Element {
  const load = useCallback(async () => {
    const toMs = runClock.now();
    const fromMs = toMs - Days(days);
    const from = new Date(fromMs).toISOString();
    const [history, pings, findings, commands] = await Promise.all([
      merchantApi.history(mac, { from }),
      merchantApi.pings(mac, { from, limit: MAX_LOADED }),
      merchantApi.findings(mac, { limit: MAX_LOADED }),
      merchantApi.commands({ mac_addr: mac, limit: MAX_LOADED }).catch(() => ({ data: [] as Command[] })),
    ]);
    const past = { history, pings: pings.data, findings: findings.data, commands: commands.data };
    const firstMs = Math.min(toMs - MIN_SHOWN, ...pings.data.map(({ received_at }) => Date.parse(received_at)));
    return { whole: { fromMs: Math.max(fromMs, firstMs - BEFORE_FIRST_PING), toMs }, past };
  }, [mac, version, days]);
  const loaded = useAnswer(load);
  return <WhenLoaded loaded={loaded}>{(history) => <HistoryView mac={mac} {...history} onWhy={onWhy} />}</WhenLoaded>;
}

interface HistoryViewProps {
  readonly mac: string;
  readonly whole: { readonly fromMs: number; readonly toMs: number };
  readonly past: LockPast;
  readonly onWhy: (id: string) => void;
}

function HistoryView({ mac, whole, past, onWhy }: HistoryViewProps): JSX.Element {
  const [range, setRange] = useState(whole);
  const [selected, setSelected] = useState<string | null>(null);
  const { findings, pings } = past;
  const data = useMemo(() => lockTimeline(mac, past), [mac, past]);
  const isShown = (date: string): boolean => Date.parse(date) >= range.fromMs && Date.parse(date) <= range.toMs;
  const select = (item: string | null): void => {
    setSelected(item);
    if (item !== null) onWhy(item.replace(/^(?:ping|finding) /, '').replace(/^command /, 'command:'));
  };
  return (
    <>
      <section class="card" aria-label="Timeline">
        <Timeline data={data} whole={whole} range={range} onRange={setRange} selected={selected} onSelect={select} />
      </section>
      <FindingTable findings={findings.filter(({ at }) => isShown(at))} onWhy={onWhy} />
      <PingTable pings={pings.filter(({ received_at }) => isShown(received_at))} onWhy={onWhy} />
    </>
  );
}

function FindingTable({
  findings,
  onWhy,
}: {
  readonly findings: readonly Finding[];
  readonly onWhy: (id: string) => void;
}) {
  if (findings.length === 0) return null;
  return (
    <section class="card" aria-label="Findings">
      <h2>Findings</h2>
      <table>
        <tbody>
          {findings.slice(0, 50).map(({ id, at, rule, severity, message }) => (
            <tr key={id}>
              <td>
                <Badge tone={severity === 'violation' ? 'bad' : 'warn'}>{rule}</Badge>
              </td>
              <td title={localTimeText(at)}>
                <Age date={at} />
              </td>
              <td>{message}</td>
              <td>
                <button type="button" class="quiet" onClick={() => onWhy(id)}>
                  Why?
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function PingTable({ pings, onWhy }: { readonly pings: readonly Ping[]; readonly onWhy: (id: string) => void }) {
  if (pings.length === 0)
    return (
      <p class="card hint">
        No pings in this time. <a href={routeTo('locks')}>All locks</a>
      </p>
    );
  return (
    <details class="card" open={pings.length < 30}>
      <summary>{pings.length} pings</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Received</th>
            <th scope="col">Reason</th>
            <th scope="col">State</th>
            <th scope="col">Battery</th>
            <th scope="col">Position</th>
            <th scope="col">
              <span class="hidden">Explanation</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {pings.slice(0, 200).map((ping) => (
            <tr key={ping.event_id}>
              <td title={ping.received_at}>{localTimeText(ping.received_at)}</td>
              <td>{ping.reason.replace('REASON_', '')}</td>
              <td>{ping.lock_state}</td>
              <td class="number">{ping.battery_percent} %</td>
              <td class="mono">{positionText(ping)}</td>
              <td>
                <button type="button" class="quiet" onClick={() => onWhy(ping.event_id)}>
                  Why?
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function positionText({ latitude, longitude, uncertainty }: Ping): string {
  if (latitude === undefined || longitude === undefined) return '';
  return `${latitude.toFixed(5)}, ${longitude.toFixed(5)} ± ${uncertainty ?? 0} m`;
}
