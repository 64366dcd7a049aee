/** Displays the events of the shell's lock, and collects them as lines of a trace, which `save` writes to a file. */

import type { DiaryEntry } from '../../../../firmware-sim/lock/diary.js';
import { headerLockOf, TraceRecorder } from '../../../../firmware-sim/trace/trace-recorder.js';
import type { EventJson } from '../../../../gateway/console/wording/event-text.js';
import { LockgateError } from '../../../../proto/errors.js';
import type { StepState } from '../../../../proto/power/step/state.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { isPingUplink, type Ping, type PingUplink, type Uplink } from '../../../../proto/wire/ping.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { paint, print, sanitizeLine } from '../../../terminal/output.js';
import { eventLines } from '../../tail/event-line.js';

/** The maximum number of lines of a session's trace. */
const MAX_LINES = 1_000_000;

/** The events of one session. */
export class ShellTranscript {
  /** The last ping that was made. */
  lastPing: PingUplink | undefined;
  readonly #mac: Mac;
  readonly #asJson: boolean;
  readonly #lines: string[] = [];
  readonly #recorder: TraceRecorder;
  /** Pings that were made but neither sent nor shown yet. */
  readonly #unsent = new Set<Uplink<Ping>>();
  #isConnected = false;
  /** Whether events are displayed; false until the shell has greeted the user. */
  isShown = false;
  /** Runs each output function. The terminal sets it to redraw the prompt after the output. */
  wrapOutput: (output: () => void) => void = (output) => output();

  constructor(mac: Mac, asJson: boolean) {
    this.#mac = mac;
    this.#asJson = asJson;
    this.#recorder = new TraceRecorder((line) => this.#addLine(line));
  }

  /** Adds the header to the trace. */
  start(atMs: number, state: Pick<StepState, 'power' | 'lockState'>): void {
    this.#recorder.start('lockgate sim shell', atMs, new Map([[this.#mac, headerLockOf(state)]]));
  }

  /**
   * Adds an entry of the lock's diary, its record of every step. `did` is an effect of a step, such as an uplink (a
   * message of the lock) that was made or sent.
   */
  readonly note = (atMs: number, entry: DiaryEntry): void => {
    const mac = this.#mac;
    switch (entry.type) {
      case 'connected':
        this.#isConnected = true;
        this.#recorder.connect(mac, atMs);
        break;
      case 'closed':
      case 'lost':
        this.#endConnection(atMs, entry.type === 'closed' ? 'closed' : 'dropped');
        break;
      case 'received':
        this.#recorder.command(mac, atMs, entry.downlink);
        break;
      case 'refused':
        this.#show(() => print(paint('yellow', `no connection: ${sanitizeLine(entry.trouble.message)}`)));
        break;
      case 'did':
        if (entry.effect.type === 'publish') this.#publish(atMs, entry.effect.uplink);
        else if (entry.effect.type === 'made') this.#noteMade(entry.effect.uplink);
        else if (entry.effect.type === 'drop') this.#endConnection(atMs, 'dropped');
        break;
      case 'world':
        this.#recorder.world(mac, atMs, entry);
        break;
      default:
        break;
    }
  };

  /** Writes all lines to a file, and returns their number. @throws LockgateError `input-file` if that fails */
  save(file: string): number {
    const sink = new LineSink(file);
    for (const line of this.#lines) sink.write(line);
    sink.end();
    return this.#lines.length;
  }

  #publish(atMs: number, uplink: Uplink): void {
    // The set has pings only: of an acknowledgement there is nothing to delete.
    this.#unsent.delete(uplink as PingUplink);
    this.#recorder.uplink(this.#mac, atMs, uplink);
  }

  #noteMade(uplink: Uplink): void {
    if (!isPingUplink(uplink)) return;
    this.lastPing = uplink;
    this.#unsent.add(uplink);
  }

  /** Shows each ping that the lock made but could not send, once. */
  showUnsent(): void {
    const unsent = [...this.#unsent];
    this.#unsent.clear();
    if (this.#asJson) return;
    for (const { timeMs, body } of unsent) {
      const timeOfDay = new Date(timeMs).toISOString().slice(11, 19);
      this.#show(() => print(paint('dim', `${timeOfDay} kept  ${body.kind} ${body.reason}, without a connection`)));
    }
  }

  #endConnection(atMs: number, cause: 'closed' | 'dropped'): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    this.#recorder.disconnect(this.#mac, atMs, cause);
  }

  #addLine(line: string): void {
    if (this.#lines.length >= MAX_LINES)
      throw new LockgateError('input-shell', `the trace has ${MAX_LINES} lines: save it and start a new session`);
    this.#lines.push(line);
    // The first line is the header.
    if (this.#lines.length === 1) return;
    const event = JSON.parse(line) as EventJson;
    if (event.event === 'world' || event.event === 'gateway') return;
    // The shell has only one lock, so its MAC is not repeated.
    const hasMac = false;
    this.#show(() => {
      if (this.#asJson) print(line);
      else for (const eventLine of eventLines(event, terminalColumns(), hasMac)) print(eventLine);
    });
  }

  #show(output: () => void): void {
    if (this.isShown) this.wrapOutput(output);
  }
}

function terminalColumns(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
