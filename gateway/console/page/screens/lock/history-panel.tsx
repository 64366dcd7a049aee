/**
 * A lock's past: the timeline, and beside it a map of where the lock was in the shown time. Dragging over the timeline
 * moves the map at once. Further down are the findings and pings of the shown time.
 */
import type { ComponentChildren, JSX } from 'preact';
import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import type { TimeRange } from '../../../timeline/timeline-data.js';
import { useApi } from '../../api/console-api.js';
import type { Command } from '../../api/shapes.js';
import { runClock } from '../../app/run-clock.js';
import { type LockPast, lockTimeline } from '../../timeline/lock-timeline.js';
import { Timeline } from '../../timeline/timeline.js';
import { WhenLoaded } from '../../view/parts.js';
import { useAnswer } from '../../view/use-answer.js';
import { type LoadedPast, PastLoader } from './past-loader.js';
import { FindingTable, PingTable } from './past-tables.js';
import { PathPanel } from './path-panel.js';

interface HistoryProps {
  readonly mac: string;
  /** A change of it loads what has come since. */
  readonly version: number;
  /** Changes when the lock enters another state, connects or disconnects. */
  readonly signs: string;
  readonly commands: readonly Command[];
  /** How much time is loaded. */
  readonly days: number;
  readonly onWhy: (id: string) => void;
  /** What is shown between the timeline and the tables, also while neither is there. */
  readonly children: ComponentChildren;
}

export function HistoryPanel({ mac, version, signs, commands, days, onWhy, children }: HistoryProps): JSX.Element {
  const api = useApi();
  const loader = useMemo(() => new PastLoader(api, mac, days), [api, mac, days]);
  const newestSigns = useRef(signs);
  newestSigns.current = signs;
  const loaded = useAnswer(
    useCallback(() => loader.load(newestSigns.current), [loader]),
    undefined,
    version,
  );
  // Null while the reader has chosen no part of these days: then all of the loaded time is shown, which follows the
  // present.
  const [chosen, setChosen] = useState<{ readonly days: number; readonly range: TimeRange } | null>(null);
  const rangeIn = (whole: TimeRange): TimeRange => (chosen?.days === days ? chosen.range : whole);
  const choose = (range: TimeRange | null): void => setChosen(range && { days, range });
  const { answer } = loaded;
  // The children have the same place before and after the past is loaded: elsewhere they would be made anew, and what
  // a reader has begun there (a command to confirm, an open explanation) would be lost.
  return (
    <>
      <WhenLoaded loaded={loaded}>
        {(past) => (
          <PastView
            mac={mac}
            {...past}
            commands={commands}
            range={rangeIn(past.whole)}
            onChoose={choose}
            onWhy={onWhy}
          />
        )}
      </WhenLoaded>
      {children}
      {answer !== null && <PastTables {...answer} range={rangeIn(answer.whole)} onWhy={onWhy} />}
    </>
  );
}

interface PastViewProps extends LoadedPast {
  readonly mac: string;
  readonly commands: readonly Command[];
  /** The part of the time that is shown. */
  readonly range: TimeRange;
  /** Called with the part that the reader chooses; null for all of the loaded time. */
  readonly onChoose: (range: TimeRange | null) => void;
  readonly onWhy: (id: string) => void;
}

/** The timeline and the map. */
function PastView({ mac, whole, past, commands, range, onChoose, onWhy }: PastViewProps): JSX.Element {
  /** The part that the reader is dragging over. */
  const [brushed, setBrushed] = useState<TimeRange | null>(null);
  const [selected, setSelected] = useState<string | null>(null);
  // All times of the past are of the run's clock, the gateway's time for locks, but for those of deliveries, which are
  // wall-clock times.
  const data = useMemo(
    () => lockTimeline(mac, { ...past, commands }, (wallMs) => runClock.fromWall(wallMs)),
    [mac, past, commands],
  );
  const show = (next: TimeRange): void =>
    onChoose(next.fromMs <= whole.fromMs && next.toMs >= whole.toMs ? null : next);
  const select = (item: string | null): void => {
    setSelected(item);
    // An item is `ping evt_…`, `finding finding:12`, `delivery evt_…` or `command 7`; `why` wants `command:7`.
    if (item !== null) onWhy(item.replace(/^(?:ping|finding|delivery) /, '').replace(/^command /, 'command:'));
  };
  return (
    <div class="past">
      <section class="card" aria-label="Timeline">
        <Timeline
          data={data}
          whole={whole}
          range={range}
          onRange={show}
          onBrush={setBrushed}
          selected={selected}
          onSelect={select}
        />
      </section>
      <PathPanel
        pings={past.pings}
        range={brushed ?? range}
        selected={selected?.startsWith('ping ') ? selected.slice('ping '.length) : null}
        onSelect={(id) => select(`ping ${id}`)}
      />
    </div>
  );
}

interface PastTablesProps extends Pick<LoadedPast, 'past' | 'hasMore'> {
  readonly range: TimeRange;
  readonly onWhy: (id: string) => void;
}

/** The findings and pings of the shown time. */
function PastTables({ past, hasMore, range, onWhy }: PastTablesProps): JSX.Element {
  const shown = useMemo(() => within(past, range), [past, range.fromMs, range.toMs]);
  // What was not loaded is older than all that was, so it is in the shown time only if all of that is.
  return (
    <>
      <FindingTable
        title="Findings"
        findings={shown.findings}
        hasMore={hasMore.findings && shown.findings.length === past.findings.length}
        onWhy={onWhy}
      />
      <PingTable
        pings={shown.pings}
        hasMore={hasMore.pings && shown.pings.length === past.pings.length}
        onWhy={onWhy}
      />
    </>
  );
}

function within({ findings, pings }: Pick<LockPast, 'findings' | 'pings'>, { fromMs, toMs }: TimeRange) {
  const isShown = (date: string): boolean => Date.parse(date) >= fromMs && Date.parse(date) <= toMs;
  return {
    findings: findings.filter(({ at }) => isShown(at)),
    pings: pings.filter(({ received_at }) => isShown(received_at)),
  };
}
