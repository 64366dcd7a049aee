/**
 * Runs an example lock of docs/firmware as a process of its own, against a gateway with a manual clock. The lock runs
 * with `--stepped`: each line of its standard input begins with the time, and it reports when it next wants to wake. So
 * both clocks go from one event to the next, and a day takes seconds. docs/firmware.md describes the lines.
 */
import type { Gateway } from '../../../gateway/gateway.js';
import { type ManualClock, type Milliseconds, Minutes } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { callOperator } from '../cli/operator-call.js';
import { Program } from '../cli/program.js';
import { ChangeSignal } from '../clocks/change-signal.js';
import type { Teardown } from '../store/temp-folder.js';

/** Something at a time of the day, written 07:30:05: an event of the lock, a command, or a loss of power. */
export type DayEvent =
  | { readonly at: string; readonly event: string }
  | { readonly at: string; readonly command: string; readonly parameters?: object }
  | { readonly at: string; readonly restart: true };

export interface SteppedLockParts {
  readonly test: Teardown;
  readonly gateway: Gateway;
  readonly clock: ManualClock;
  readonly mac: Mac;
  readonly secret: string;
  /** The program and its arguments before MAC, host and port, and those after. */
  readonly command: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** How long a lock may take for one step, in real time. */
const STEP_SECONDS = 30;
const WAKE = /^at (\d+) wake (\d+|never)$/;

export class SteppedLock {
  readonly #parts: SteppedLockParts;
  readonly #changeSignal = new ChangeSignal();
  #program!: Program;
  /** Lines of the program that were read. */
  #read = 0;
  /** When the lock next wants to wake, as it said at which time; undefined after it has done something since. */
  #wake: { readonly atMs: number; readonly dueMs: number } | undefined;
  #isConnected = false;
  #ended = 0;
  /** Connections that ended, by the gateway's count. */
  #gatewayEnded = 0;
  /** Commands that the gateway has for the lock, and that the lock has not received. */
  readonly #owed = new Set<number>();

  constructor(parts: SteppedLockParts) {
    this.#parts = parts;
    parts.gateway.events.on('disconnected', ({ mac }) => {
      if (mac !== parts.mac) return;
      this.#gatewayEnded += 1;
      this.#changeSignal.notify();
    });
  }

  /** Switches the lock on. */
  async start(): Promise<void> {
    const { test, gateway, mac, secret, command, before, after } = this.#parts;
    const args = [...before, mac, '127.0.0.1', String(gateway.mqttPort), ...after];
    this.#program = new Program(test, command, args, { LOCK_SECRET: secret });
    this.#read = 0;
    await this.#tell('tick');
  }

  /** Lives from the clock's time on, through the events, for `span`. */
  async live(events: readonly DayEvent[], span: Milliseconds): Promise<void> {
    const { clock } = this.#parts;
    const startMs = clock.now();
    const untilMs = startMs + span;
    let next = 0;
    while (clock.now() < untilMs) {
      const event = events[next];
      const eventMs = event === undefined ? untilMs : startMs + timeOfDay(event.at);
      const toMs = Math.min(eventMs, this.#wake?.dueMs ?? untilMs, untilMs);
      clock.advance(Math.max(toMs - clock.now(), 1));
      if (event === undefined || eventMs > clock.now()) await this.#tell('tick');
      else {
        next += 1;
        await this.#happen(event);
      }
    }
  }

  async #happen(event: DayEvent): Promise<void> {
    if ('event' in event) return await this.#tell(event.event);
    if ('restart' in event) {
      this.#program.endStdin('');
      await this.#program.waitForExit();
      return await this.start();
    }
    // The lock learns the time first: a command must not arrive before its clock has reached the command's time.
    await this.#tell('tick');
    const { gateway, mac } = this.#parts;
    const { status, body } = await callOperator(gateway, 'POST', '/commands', {
      macs: [formatMac(mac)],
      type: event.command,
      parameters: event.parameters ?? {},
      confirm_airplane: true,
    });
    const [command] = (body as { commands?: { id: number }[] }).commands ?? [];
    if (command === undefined) throw new Error(`the gateway answered ${status}: ${JSON.stringify(body)}`);
    this.#owed.add(command.id);
    await this.#settle('command');
  }

  /** Tells the lock the time and an event, and waits until it and the gateway have nothing left to do. */
  async #tell(event: string): Promise<void> {
    const nowMs = this.#parts.clock.now();
    this.#wake = undefined;
    this.#program.writeStdin(`${nowMs} ${event}\n`);
    await this.#settle(event);
  }

  async #settle(event: string): Promise<void> {
    const nowMs = this.#parts.clock.now();
    const deadline = (): string => `${nowMs} ${event}: ${this.#program.stdout.slice(-5).join(' | ')}`;
    for (;;) {
      await this.#program.waitUntil((lines) => lines.length > this.#read || this.#isSettled(nowMs), STEP_SECONDS);
      this.#readLines();
      if (!this.#isSettled(nowMs)) continue;
      await this.#changeSignal.waitUntil(() => this.#gatewayEnded >= this.#ended, STEP_SECONDS, deadline);
      return;
    }
  }

  #isSettled(nowMs: number): boolean {
    return this.#wake?.atMs === nowMs && !(this.#isConnected && this.#owed.size > 0);
  }

  #readLines(): void {
    const lines = this.#program.stdout;
    for (; this.#read < lines.length; this.#read += 1) {
      const line = lines[this.#read] as string;
      const [, at, due] = WAKE.exec(line) ?? [];
      this.#wake = at === undefined ? undefined : { atMs: Number(at), dueMs: due === 'never' ? Infinity : Number(due) };
      const [word, id] = line.split(' ');
      if (word === 'connected') this.#isConnected = true;
      if (word === 'command') this.#owed.delete(Number(id));
      if (word !== 'disconnected') continue;
      this.#isConnected = false;
      this.#ended += 1;
    }
  }
}

/** The time since midnight. */
function timeOfDay(text: string): Milliseconds {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number);
  return Minutes(hours * 60 + minutes) + seconds * 1000;
}
