/**
 * The interfaces of the readers of other programs' recordings: a reader turns bytes into events of locks, and counts
 * the rows that it can't import. Each format has a reader (`pcap/`, `mosquitto/`, `at-log/`, `csv/`). Readers open no
 * files.
 */
import type { Result } from '../../proto/errors.js';
import type { TraceAck, TraceCommand, TraceConnect, TraceDisconnect, TracePing } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';

/** An event of a trace that is about a lock. */
export type LockEvent = TraceConnect | TraceDisconnect | TracePing | TraceAck | TraceCommand;

/** One event of a recording. Events may come in any order of time. */
export interface RecordedEvent {
  readonly event: LockEvent;
  /** The bytes of an uplink (a message of a lock), if the recording has them. */
  readonly raw?: Uint8Array | undefined;
  /** True for a ping whose boot and sequence the recording does not have: the importer invents them. */
  readonly lacksUplinkNumbers?: boolean;
}

/** Receives the results of a reader. */
export interface RecordingSink {
  event(recorded: RecordedEvent): void;
  /**
   * Counts a row (line or packet) that is not imported.
   *
   * @param reason one of few fixed sentences, which the report counts by
   * @param row the number of the line or packet in the current file, from 1
   * @param detail what is wrong with this row; the report shows the first such detail
   */
  skip(reason: string, row: number, detail?: string): void;
  /** Reports an assumption that the user should know, such as an invented MAC. */
  note(sentence: string): void;
}

/** What a row of a format is called in reports. */
export type RowUnit = 'line' | 'packet';

/** Why a file can't be read any further. `at` is a place such as `line 3` or `offset 24`. */
export interface RecordingFault {
  readonly at: string;
  /** What is wrong, and what was expected. */
  readonly message: string;
}

/** Reads all files of one recording, in the order of the calls. */
export interface RecordingReader {
  readonly unit: RowUnit;
  /** Reads one file. Never throws, whatever the bytes are. Returns the number of its rows. */
  read(chunks: AsyncIterable<Uint8Array>, sink: RecordingSink): Promise<Result<number, RecordingFault>>;
  /** Called after the last file. Returns why nothing could be imported from the files; null if all is well. */
  finish(sink: RecordingSink): RecordingFault | null;
}

/** Settings of the user that all formats share. */
export interface RecordingOptions {
  /** The lock of rows that name none; null if the user gave none. */
  readonly mac: Mac | null;
  /** The UTC offset of times without one, in ms. */
  readonly utcOffsetMs: number;
}
