/** The events of the shell's lock: displayed, and collected as the lines of a trace for `save`. */

import type { DiaryEntry } from '../../../../firmware-sim/lock/diary.js';
import { headerLockOf, TraceRecorder } from '../../../../firmware-sim/trace/trace-recorder.js';
import { LockgateError } from '../../../../proto/errors.js';
import type { StepState } from '../../../../proto/power/step/state.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { isPingUplink, type Ping, type PingUplink, type Uplink } from '../../../../proto/wire/ping.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { oneLine, paint, print } from '../../../terminal/output.js';
import { type EventJson, eventLines } from '../../tail/event-line.js';

/** The most lines of a session. */
const MOST_LINES = 1_000_000;

export class ShellTranscript {
  /** The last ping that was made. */
  lastPing: PingUplink | undefined;
  readonly #mac: Mac;
  readonly #asJson: boolean;
  readonly #lines: string[] = [];
  readonly #recorder: TraceRecorder;
  /** Pings that were made and neither sent nor shown. */
  readonly #unsent = new Set<Uplink<Ping>>();
  #isUp = false;
  /** Nothing is shown before the shell's greeting. */
  isShown = false;
  /** Called around each output, so that the prompt can be redrawn. */
  around: (show: () => void) => void = (show) => show();

  constructor(mac: Mac, asJson: boolean) {
    this.#mac = mac;
    this.#asJson = asJson;
    this.#recorder = new TraceRecorder((line) => this.#keep(line));
  }

  /** Writes the header of the trace. */
  start(atMs: number, state: Pick<StepState, 'power' | 'lockState'>): void {
    this.#recorder.start('lockgate sim shell', atMs, new Map([[this.#mac, headerLockOf(state)]]));
  }

  /** Takes an entry of the lock's diary. */
  readonly note = (atMs: number, entry: DiaryEntry): void => {
    const mac = this.#mac;
    switch (entry.type) {
      case 'connected':
        this.#isUp = true;
        this.#recorder.connect(mac, atMs);
        break;
      case 'closed':
      case 'lost':
        this.#end(atMs, entry.type === 'closed' ? 'closed' : 'dropped');
        break;
      case 'received':
        this.#recorder.command(mac, atMs, entry.downlink);
        break;
      case 'refused':
        this.#show(() => print(paint('yellow', `no connection: ${oneLine(entry.trouble.message)}`)));
        break;
      case 'did':
        if (entry.effect.type === 'publish') this.#publish(atMs, entry.effect.uplink);
        else if (entry.effect.type === 'made') this.#made(entry.effect.uplink);
        else if (entry.effect.type === 'drop') this.#end(atMs, 'dropped');
        break;
      case 'world':
        this.#recorder.world(mac, atMs, entry);
        break;
      default:
        break;
    }
  };

  /** Writes all lines to a file. Returns how many. @throws LockgateError `input-file` where it can't be made */
  save(file: string): number {
    const sink = new LineSink(file);
    for (const line of this.#lines) sink.write(line);
    sink.end();
    return this.#lines.length;
  }

  #publish(atMs: number, uplink: Uplink): void {
    this.#unsent.delete(uplink as PingUplink);
    this.#recorder.uplink(this.#mac, atMs, uplink);
  }

  #made(uplink: Uplink): void {
    if (!isPingUplink(uplink)) return;
    this.lastPing = uplink;
    this.#unsent.add(uplink);
  }

  /** Shows the pings that the lock made and could not send, once each. */
  showUnsent(): void {
    const unsent = [...this.#unsent];
    this.#unsent.clear();
    if (this.#asJson) return;
    for (const { timeMs, body } of unsent) {
      const time = new Date(timeMs).toISOString().slice(11, 19);
      this.#show(() => print(paint('dim', `${time} kept  ${body.kind} ${body.reason}, without a connection`)));
    }
  }

  #end(atMs: number, cause: 'closed' | 'dropped'): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#recorder.disconnect(this.#mac, atMs, cause);
  }

  #keep(line: string): void {
    if (this.#lines.length >= MOST_LINES)
      throw new LockgateError('input-shell', `the trace has ${MOST_LINES} lines: save it and start a new session`);
    this.#lines.push(line);
    if (this.#lines.length === 1) return;
    const event = JSON.parse(line) as EventJson;
    if (event.event === 'world' || event.event === 'gateway') return;
    this.#show(() => {
      if (this.#asJson) print(line);
      else for (const shown of eventLines(event, widthOf(), false)) print(shown);
    });
  }

  #show(show: () => void): void {
    if (this.isShown) this.around(show);
  }
}

function widthOf(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
