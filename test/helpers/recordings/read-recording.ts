/**
 * Reads test recordings (files of other programs with messages of locks) with a reader of cli/recordings, and collects
 * the events, the skipped rows and the faults.
 */
import type { RecordedEvent, RecordingFault, RecordingReader } from '../../../cli/recordings/recording.js';

/** What a reader read. */
export interface ReadRecording {
  readonly events: readonly RecordedEvent[];
  /** Why rows were skipped, each with the row's number, such as `a line without a time 3`. */
  readonly skipped: readonly string[];
  /** Sentences about the whole recording. */
  readonly notes: readonly string[];
  readonly faults: readonly RecordingFault[];
}

/** Reads the files one after the other. @param chunkBytes how many bytes the reader gets at a time */
export async function readRecording(
  reader: RecordingReader,
  files: readonly (Uint8Array | string)[],
  chunkBytes = 64 * 1024,
): Promise<ReadRecording> {
  const events: RecordedEvent[] = [];
  const skipped: string[] = [];
  const notes: string[] = [];
  const faults: RecordingFault[] = [];
  const sink = {
    event: (event: RecordedEvent) => void events.push(event),
    skip: (reason: string, row: number) => void skipped.push(`${reason} ${row}`),
    note: (sentence: string) => void notes.push(sentence),
  };
  for (const file of files) {
    const read = await reader.read(chunksOf(Buffer.from(file), chunkBytes), sink);
    if (!read.ok) faults.push(read.error);
  }
  // Some faults show only after the last file.
  const fault = reader.finish(sink);
  if (fault !== null) faults.push(fault);
  return { events, skipped, notes, faults };
}

async function* chunksOf(bytes: Buffer, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield Buffer.from(bytes.subarray(at, at + chunkBytes));
}

/** One line per event: its time in seconds since the first, the lock's last digits, and what happened. */
export function eventLines(events: readonly RecordedEvent[]): string[] {
  const startMs = events[0]?.event.atMs ?? 0;
  return events.map(({ event }) => {
    const words: string[] = [event.event];
    if (event.event === 'disconnect') words.push(event.cause);
    if (event.event === 'ping' || event.event === 'ack') words.push(`${event.uplink.boot}/${event.uplink.sequence}`);
    if (event.event === 'command') words.push(`${event.id} ${event.command.type}`);
    const source = event.event !== 'command' && event.source === 'phone' ? ' phone' : '';
    return `${(event.atMs - startMs) / 1000} ${event.mac.slice(-2)}${source} ${words.join(' ')}`;
  });
}
