/**
 * The main module of a thread of `sim run --jobs`: simulates a share of the locks. If the run writes no trace, the
 * thread simulates the whole time at once, and reports its progress. Otherwise it simulates a chunk of time whenever it
 * is asked for one, and answers with the chunk's lines of the trace.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type LockRange, TraceShare } from '../../../firmware-sim/fleet/trace-share.js';
import { VirtualRun } from '../../../firmware-sim/fleet/virtual-run.js';
import type { VirtualTraceOptions } from '../../../firmware-sim/fleet/virtual-trace.js';
import { LineRecorder } from '../../../firmware-sim/trace/line-recorder.js';
import { type Milliseconds, monotonicMs } from '../../../proto/clock.js';
import { readFleetPlan } from './fleet-plan.js';
import type { JobAnswer, JobData, JobRequest } from './jobs.js';
import { virtualOptions } from './virtual-options.js';

/** How often a thread reports its progress. */
const REPORT_EVERY_MS: Milliseconds = 100;

const port = parentPort as MessagePort;

function report(answer: JobAnswer, buffers: ArrayBuffer[] = []): void {
  port.postMessage(answer, buffers);
}

/** Simulates the locks of the share one by one, and reports only how many there were. */
function count(options: VirtualTraceOptions, range: LockRange): void {
  const recorder = new LineRecorder(null);
  const run = new VirtualRun({ ...options, range, sink: recorder, anyOrder: true });
  let reportedMs = monotonicMs();
  for (let finished = 0; finished < range.end - range.first; ) {
    finished = run.finishNext(1);
    const nowMs = monotonicMs();
    if (nowMs - reportedMs < REPORT_EVERY_MS && finished < range.end - range.first) continue;
    reportedMs = nowMs;
    report({ type: 'count', locks: finished, connections: recorder.connections, uplinks: recorder.uplinks });
  }
}

/** Answers each request with the next chunk of the trace. */
function answerWithChunks(options: VirtualTraceOptions, range: LockRange): void {
  const share = new TraceShare(options, range);
  report({ type: 'locks', locks: share.headerLocks() });
  port.on('message', ({ untilMs }: JobRequest) => {
    const chunk = share.advance(untilMs);
    const { dueMs, lock, start } = chunk.firings;
    report({ type: 'chunk', chunk }, [chunk.lines.buffer, dueMs.buffer, lock.buffer, start.buffer]);
  });
}

async function main({ flags, startMs, range, isWritten }: JobData): Promise<void> {
  const options = virtualOptions(flags, await readFleetPlan(flags), startMs);
  if (isWritten) answerWithChunks(options, range);
  else count(options, range);
}

// An error ends the thread, and the run.
void main(workerData as JobData);
