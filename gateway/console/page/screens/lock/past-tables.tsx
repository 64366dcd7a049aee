/** Findings of the judge, and a lock's pings, as tables; each row has a button that explains it (`why`). */
import type { Finding, Ping } from '../../api/shapes.js';
import { routeTo } from '../../app/route.js';
import { useLive } from '../../live/use-live.js';
import { Age } from '../../view/age.js';
import { cutRows } from '../../view/cut-rows.js';
import { Badge, lockName } from '../../view/parts.js';
import { Sentence } from '../../view/sentence.js';
import { timeText } from '../../view/time-text.js';

/** The maximum number of rows of a table. */
const MAX_FINDINGS = 50;
const MAX_PINGS = 200;
/** A table of at least this many pings is collapsed at first. */
const MIN_COLLAPSED_PINGS = 30;

interface FindingTableProps {
  readonly title: string;
  /** Whether each row names its lock: for findings about several locks. */
  readonly namesLocks?: boolean;
  readonly findings: readonly Finding[];
  /** Whether there are older ones that were not loaded. */
  readonly hasMore: boolean;
  readonly onWhy: (id: string) => void;
}

export function FindingTable({ title, namesLocks = false, findings, hasMore, onWhy }: FindingTableProps) {
  const { locks } = useLive();
  const { shown, note } = cutRows(findings, MAX_FINDINGS, 'findings', hasMore);
  if (findings.length === 0) return null;
  return (
    <section class="card" aria-label="Findings">
      <h2>{title}</h2>
      <table class="stacked">
        <tbody>
          {shown.map(({ id, mac_addr, at, rule, severity, message }) => (
            <tr key={id}>
              {namesLocks && mac_addr !== undefined && (
                <td>
                  <a href={routeTo('lock', [mac_addr])}>{lockName(locks.find(mac_addr) ?? { name: null, mac_addr })}</a>
                </td>
              )}
              <td>
                <Badge tone={severity === 'violation' ? 'bad' : 'warn'}>{rule}</Badge>
              </td>
              <td>
                <Age date={at} />
              </td>
              <td class="prose">
                <Sentence text={message} />
              </td>
              <td>
                <button type="button" class="quiet" onClick={() => onWhy(id)}>
                  Why?
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {note !== null && <p class="hint">{note}</p>}
    </section>
  );
}

interface PingTableProps {
  readonly pings: readonly Ping[];
  /** Whether there are older ones that were not loaded. */
  readonly hasMore: boolean;
  readonly onWhy: (id: string) => void;
}

export function PingTable({ pings, hasMore, onWhy }: PingTableProps) {
  if (pings.length === 0)
    return (
      <p class="card hint">
        No pings in this time. <a href={routeTo('locks')}>All locks</a>
      </p>
    );
  const { shown, note } = cutRows(pings, MAX_PINGS, 'pings', hasMore);
  return (
    <details class="card" open={pings.length < MIN_COLLAPSED_PINGS}>
      <summary>{note ?? `${pings.length} pings`}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Received</th>
            <th scope="col">Reason</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Battery
            </th>
            <th scope="col">Position</th>
            <th scope="col">
              <span class="hidden">Explanation</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((ping) => (
            <tr key={ping.event_id}>
              <td title={ping.received_at}>
                <time dateTime={ping.received_at}>{timeText(ping.received_at)}</time>
              </td>
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
  if (latitude === undefined || longitude === undefined || uncertainty === undefined) return '';
  return `${latitude.toFixed(5)}, ${longitude.toFixed(5)} ± ${uncertainty} m`;
}
