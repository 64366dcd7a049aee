/** What the check of a trace found: counts, a timeline of the chosen lock, the findings, the certificate. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Timeline } from '../timeline/timeline.js';
import { useNarrow } from '../view/use-narrow.js';
import { VirtualList } from '../view/virtual-list.js';
import type { PageFinding, PageRow, TraceReport } from './trace-report.js';

const FINDING_ROW_PIXELS = 32;
const NARROW_FINDING_ROW_PIXELS = 92;

export function TraceReportView({ report }: { readonly report: TraceReport }): JSX.Element {
  const [mac, setMac] = useState(report.locks[0]?.mac ?? '');
  const [range, setRange] = useState(report.range);
  const [selected, setSelected] = useState<string | null>(null);
  const lock = report.locks.find((each) => each.mac === mac);
  const select = (finding: PageFinding): void => {
    // Of very many locks, some have no timeline: then the timeline on the screen stays.
    if (report.locks.some((each) => each.mac === finding.mac)) setMac(finding.mac);
    setSelected(`finding ${finding.id}`);
  };
  return (
    <>
      <Counts report={report} />
      {report.error !== null && (
        <p class="failure" role="alert">
          Not read to its end: {report.error}
        </p>
      )}
      <Notes notes={report.notes} />
      {lock !== undefined && (
        <section class="card" aria-label="Timeline">
          <header class="card-head">
            <LockChooser report={report} mac={mac} onChoose={setMac} />
          </header>
          <Timeline
            data={lock}
            whole={report.range}
            range={range}
            onRange={setRange}
            selected={selected}
            onSelect={setSelected}
          />
        </section>
      )}
      <Findings report={report} selected={selected} onSelect={select} />
      <Certificate rows={report.certificate} />
    </>
  );
}

function Counts({ report }: { readonly report: TraceReport }): JSX.Element {
  const { file, pings, lockCount, violations, warnings } = report;
  const isClean = violations === 0;
  return (
    <p class="counts" role="status">
      <strong>{file}</strong>: {counted(pings, 'ping')} of {counted(lockCount, 'lock')}.{' '}
      <span class={isClean ? 'good' : 'bad'}>
        {isClean ? '✓ no violations' : `✗ ${counted(violations, 'violation')}`}
      </span>
      , <span class={warnings === 0 ? '' : 'warn'}>{counted(warnings, 'warning')}</span>
    </p>
  );
}

/** Such as “1 ping” and “2,000 pings”. */
function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

function Notes({ notes }: { readonly notes: readonly string[] }): JSX.Element | null {
  if (notes.length === 0) return null;
  return (
    <details class="card">
      <summary>{counted(notes.length, 'note')} about members that the format does not have</summary>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </details>
  );
}

function LockChooser({
  report,
  mac,
  onChoose,
}: {
  readonly report: TraceReport;
  readonly mac: string;
  readonly onChoose: (mac: string) => void;
}): JSX.Element {
  const counts = useMemo(() => findingCounts(report), [report]);
  return (
    <label>
      Lock{' '}
      <select value={mac} onChange={(event) => onChoose(event.currentTarget.value)}>
        {report.locks.map(({ mac: each, findings }) => (
          <option key={each} value={each}>
            {each}
            {findings.length > 0 ? ` (${counted(counts.get(each) ?? 0, 'finding')})` : ''}
          </option>
        ))}
      </select>
      {report.lockCount > report.locks.length && (
        <span class="hint">
          {' '}
          {report.lockCount - report.locks.length} locks with fewer findings or none are not listed
        </span>
      )}
    </label>
  );
}

/** The number of listed findings of each lock; its timeline may have fewer marks. */
function findingCounts({ findings }: TraceReport): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { mac } of findings) counts.set(mac, (counts.get(mac) ?? 0) + 1);
  return counts;
}

function Findings({
  report,
  selected,
  onSelect,
}: {
  readonly report: TraceReport;
  readonly selected: string | null;
  readonly onSelect: (finding: PageFinding) => void;
}): JSX.Element {
  const [rule, setRule] = useState('');
  const isNarrow = useNarrow();
  const rules = useMemo(() => [...new Set(report.findings.map((each) => each.rule))].sort(), [report]);
  const shown = rule === '' ? report.findings : report.findings.filter((each) => each.rule === rule);
  // Its row may have no room for the whole sentence.
  const chosen = shown.find(({ id }) => selected === `finding ${id}`);
  const all = report.violations + report.warnings;
  if (all === 0) return <p class="card empty">No findings: the locks did what the model demands.</p>;
  return (
    <section class="card" aria-label="Findings">
      <header class="card-head">
        <h2>{counted(shown.length, 'finding')}</h2>
        <label>
          Rule{' '}
          <select value={rule} onChange={(event) => setRule(event.currentTarget.value)}>
            <option value="">all</option>
            {rules.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        {all > report.findings.length && (
          <span class="hint">
            the first {report.findings.length.toLocaleString('en-US')} of {all.toLocaleString('en-US')}
          </span>
        )}
      </header>
      {chosen !== undefined && (
        <p>
          Line {chosen.line.toLocaleString('en-US')}: {chosen.message}
        </p>
      )}
      <VirtualList
        items={shown}
        rowPixels={isNarrow ? NARROW_FINDING_ROW_PIXELS : FINDING_ROW_PIXELS}
        keyOf={({ id }) => String(id)}
        label="Findings"
        onOpen={onSelect}
        row={(finding) => (
          <span class={`finding-row${selected === `finding ${finding.id}` ? ' is-selected' : ''}`}>
            <span class={finding.severity}>{finding.severity === 'violation' ? '▼' : '○'}</span>
            <span class="number">{finding.line}</span>
            <code>{finding.rule}</code>
            <span class="mono">{finding.mac}</span>
            <span class="mono">{finding.uplink}</span>
            <span class="grow" title={finding.message}>
              {finding.message}
            </span>
          </span>
        )}
      />
    </section>
  );
}

const VERDICT_SIGNS: Readonly<Record<string, string>> = { PASS: '✓', FAIL: '✗', 'NOT SEEN': '–' };

function Certificate({ rows }: { readonly rows: readonly PageRow[] }): JSX.Element | null {
  if (rows.length === 0) return null;
  const count = (verdict: string): number => rows.filter((row) => row.verdict === verdict).length;
  return (
    <details class="card">
      <summary>
        Certificate: {count('PASS')} passed, {count('FAIL')} failed, {count('NOT SEEN')} not seen
      </summary>
      <table class="stacked">
        <thead>
          <tr>
            <th scope="col">Verdict</th>
            <th scope="col">Row</th>
            <th scope="col">What must hold</th>
            <th scope="col" class="number">
              Seen
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ row, says, verdict, seen }) => (
            <tr key={row}>
              <td class={`verdict ${verdict === 'FAIL' ? 'bad' : verdict === 'PASS' ? 'good' : ''}`}>
                {VERDICT_SIGNS[verdict]} {verdict}
              </td>
              <td>
                <code>{row}</code>
              </td>
              <td class="prose">{says}</td>
              <td class="number" data-title="Seen">
                {seen.toLocaleString('en-US')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
