/** Reads a trace as a stream of events, so that two traces can be read side by side with bounded memory. */
import type { TraceEvent } from '../../../../proto/trace/trace.js';
import { readTraceFile } from '../trace-file.js';

/** An event and the number of its line. */
export interface LinedEvent {
  readonly event: TraceEvent;
  readonly line: number;
}

/**
 * The events of a trace in batches, one for each chunk of the file. A chunk is read when the consumer requests the next
 * batch. The reader (readTraceFile) calls back for each event and pauses after each chunk, so the reader and the
 * consumer of the stream wake each other in turn.
 *
 * @throws LockgateError `input-…` as {@link readTraceFile}
 */
export async function* traceEvents(file: string): AsyncGenerator<readonly LinedEvent[]> {
  let events: LinedEvent[] = [];
  let isDone = false;
  let failure: unknown;
  let wakeConsumer = (): void => undefined;
  let wakeReader = (): void => undefined;
  const reading = readTraceFile(file, {
    header: () => undefined,
    event: (event, line) => events.push({ event, line }),
    pause: () =>
      new Promise<void>((resolve) => {
        wakeReader = resolve;
        wakeConsumer();
      }),
  }).then(
    () => {
      isDone = true;
      wakeConsumer();
    },
    (error: unknown) => {
      failure = error;
      isDone = true;
      wakeConsumer();
    },
  );
  while (!isDone) {
    await new Promise<void>((resolve) => {
      wakeConsumer = resolve;
      wakeReader();
    });
    const batch = events;
    events = [];
    if (batch.length > 0) yield batch;
  }
  await reading;
  if (failure !== undefined) throw failure;
}
