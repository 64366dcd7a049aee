/**
 * The screen for traces: drop a `.jsonl` or `.jsonl.gz`, and the page judges it with the code of `lockgate trace
 * check`. The file never leaves the browser.
 */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CheckMessage, TraceReport } from '../trace/trace-report.js';
import { TraceReportView } from '../trace/trace-report-view.js';

/** Where the check of the dropped file is. */
type CheckState =
  | { readonly phase: 'waiting' }
  | { readonly phase: 'running'; readonly file: string; readonly lines: number }
  | { readonly phase: 'done'; readonly report: TraceReport }
  | { readonly phase: 'failed'; readonly file: string; readonly why: string };

export function TraceScreen({ workerUrl }: { readonly workerUrl: string }): JSX.Element {
  const [state, check] = useCheck(workerUrl);
  /** Whether a file is being dragged over the screen. */
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const take = (files: FileList | null | undefined): void => {
    const file = files?.[0];
    if (file !== undefined) check(file);
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer?.files);
  };
  const drag = (event: DragEvent): void => {
    event.preventDefault();
    setOver(true);
  };
  return (
    <section
      class={`screen trace${isOver ? ' is-over' : ''}`}
      aria-labelledby="trace-title"
      onDrop={drop}
      onDragOver={drag}
      onDragLeave={() => setOver(false)}
    >
      <header class="screen-head">
        <h1 id="trace-title">Trace</h1>
        <button type="button" onClick={() => input.current?.click()}>
          Choose a file
        </button>
        <input
          ref={input}
          type="file"
          hidden
          accept=".jsonl,.gz"
          onChange={(event) => take(event.currentTarget.files)}
        />
      </header>
      <TraceState state={state} />
    </section>
  );
}

function TraceState({ state }: { readonly state: CheckState }): JSX.Element {
  switch (state.phase) {
    case 'waiting':
      return (
        <div class="empty drop">
          <p class="big">Drop a trace here</p>
          <p>
            A <code>.jsonl</code> or <code>.jsonl.gz</code> of <code>lockgate trace record</code>,{' '}
            <code>trace export</code>, <code>trace import</code> or <code>sim run</code>. It is judged in this page, by
            the code that the gateway runs, and never leaves your browser.
          </p>
        </div>
      );
    case 'running':
      return (
        <p class="progress" role="status">
          Judging {state.file}: {state.lines.toLocaleString('en-US')} lines …
        </p>
      );
    case 'failed':
      return (
        <p class="failure" role="alert">
          {state.file}: {state.why}
        </p>
      );
    case 'done':
      return <TraceReportView report={state.report} />;
  }
}

/** The state of the check, and a function that starts one. A new file ends the check of the one before. */
function useCheck(workerUrl: string) {
  const [state, setState] = useState<CheckState>({ phase: 'waiting' });
  const worker = useRef<Worker | null>(null);
  useEffect(() => () => worker.current?.terminate(), []);
  const check = useMemo(() => {
    return (file: File): void => {
      worker.current?.terminate();
      const started = new Worker(workerUrl, { type: 'module' });
      worker.current = started;
      setState({ phase: 'running', file: file.name, lines: 0 });
      const fail = (why: string): void => setState({ phase: 'failed', file: file.name, why });
      started.onmessage = ({ data }: MessageEvent<CheckMessage>) => {
        if (data.type === 'progress') setState({ phase: 'running', file: file.name, lines: data.lines });
        else if (data.type === 'failed') fail(data.why);
        else setState({ phase: 'done', report: data.report });
      };
      started.onerror = ({ message }) => fail(message || 'The check could not be started.');
      started.postMessage({ file });
    };
  }, [workerUrl]);
  return [state, check] as const;
}
