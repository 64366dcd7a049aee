/**
 * Runs an example lock of docs/firmware as a separate process, against a gateway with a manual clock. The lock runs
 * with `--stepped`: each line of its standard input starts with the time, and the lock prints when it next wants to
 * wake. So both clocks jump from one event to the next, and a day takes seconds. docs/firmware.md describes the lines.
 */
import type { Gateway } from '../../../gateway/gateway.js';
import { type ManualClock, type Milliseconds, Minutes } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { callOperator } from '../cli/operator-call.js';
import { Program } from '../cli/program.js';
import { ChangeSignal } from '../clocks/change-signal.js';
import type { Teardown } from '../store/temp-folder.js';

/** Something that happens at a time such as 07:30:05: an event of the lock, a command, or a loss of power. */
export type DayEvent =
  | { readonly at: string; readonly event: string }
  | { readonly at: string; readonly command: string; readonly parameters?: object }
  | { readonly at: string; readonly restart: true };

/** The lock's program, and the gateway to which it connects. */
export interface SteppedLockOptions {
  readonly test: Teardown;
  readonly gateway: Gateway;
  readonly clock: ManualClock;
  readonly mac: Mac;
  readonly secret: string;
  /** The lock's program. Its arguments are `before`, the MAC, the host, the port, and `after`. */
  readonly command: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** How long a lock may take for one step, in real time. */
const STEP_TIMEOUT_SECONDS = 30;
/** The line in which the lock says, at a time, when it next wants to wake. */
const WAKE_LINE = /^at (\d+) wake (\d+|never)$/;

/** One run of an example lock with its gateway. Test code calls `start`, then `live` any number of times. */
export class SteppedLock {
  readonly #options: SteppedLockOptions;
  readonly #changeSignal = new ChangeSignal();
  #program!: Program;
  /** The number of the program's output lines that were read. */
  #readCount = 0;
  /** The lock's last output if it was a wake line: when it was printed, and when the lock wants to wake. */
  #wake: { readonly atMs: number; readonly dueMs: number } | undefined;
  #isConnected = false;
  /** The number of disconnects that the lock has printed. */
  #disconnectsByLock = 0;
  /** The number of disconnects that the gateway has noticed. */
  #disconnectsByGateway = 0;
  /** Commands that the gateway has for the lock, and that the lock has not received. */
  readonly #undeliveredCommands = new Set<number>();

  constructor(parts: SteppedLockOptions) {
    this.#options = parts;
    parts.gateway.events.on('disconnected', ({ mac }) => {
      if (mac !== parts.mac) return;
      this.#disconnectsByGateway += 1;
      this.#changeSignal.notify();
    });
  }

  /** Switches the lock on. */
  async start(): Promise<void> {
    const { test, gateway, mac, secret, command, before, after } = this.#options;
    const args = [...before, mac, '127.0.0.1', String(gateway.mqttPort), ...after];
    this.#program = new Program(test, command, args, { LOCK_SECRET: secret });
    this.#readCount = 0;
    await this.#sendEvent('tick');
  }

  /** Runs lock and gateway for `span`, and applies the events. Their times count from now as if now were midnight. */
  async live(events: readonly DayEvent[], span: Milliseconds): Promise<void> {
    const { clock } = this.#options;
    const startMs = clock.now();
    const untilMs = startMs + span;
    let next = 0;
    while (clock.now() < untilMs) {
      const event = events[next];
      const eventMs = event === undefined ? untilMs : startMs + timeOfDay(event.at);
      const nextMs = Math.min(eventMs, this.#wake?.dueMs ?? untilMs, untilMs);
      // At least 1 ms, so that a lock that wants to wake at once can't stop the time.
      clock.advance(Math.max(nextMs - clock.now(), 1));
      if (event === undefined || eventMs > clock.now()) await this.#sendEvent('tick');
      else {
        next += 1;
        await this.#apply(event);
      }
    }
  }

  /** Applies an event at the clock's time. */
  async #apply(event: DayEvent): Promise<void> {
    if ('event' in event) return await this.#sendEvent(event.event);
    if ('restart' in event) {
      this.#program.endStdin('');
      await this.#program.waitForExit();
      return await this.start();
    }
    // The lock gets the time first, since a command must not arrive before the lock's clock has reached its time.
    await this.#sendEvent('tick');
    const { gateway, mac } = this.#options;
    const { status, body } = await callOperator(gateway, 'POST', '/commands', {
      macs: [formatMac(mac)],
      type: event.command,
      parameters: event.parameters ?? {},
      // Without it the gateway refuses to switch on airplane mode.
      confirm_airplane: true,
    });
    const [command] = (body as { commands?: { id: number }[] }).commands ?? [];
    if (command === undefined) throw new Error(`the gateway answered ${status}: ${JSON.stringify(body)}`);
    this.#undeliveredCommands.add(command.id);
    await this.#waitUntilSettled('command');
  }

  /** Sends the lock the time and an event, and waits until lock and gateway have nothing left to do. */
  async #sendEvent(event: string): Promise<void> {
    const nowMs = this.#options.clock.now();
    this.#wake = undefined;
    this.#program.writeStdin(`${nowMs} ${event}\n`);
    await this.#waitUntilSettled(event);
  }

  async #waitUntilSettled(event: string): Promise<void> {
    const nowMs = this.#options.clock.now();
    const describeDeadline = (): string => `${nowMs} ${event}: ${this.#program.stdout.slice(-5).join(' | ')}`;
    for (;;) {
      await this.#program.waitUntil(
        (lines) => lines.length > this.#readCount || this.#isSettled(nowMs),
        STEP_TIMEOUT_SECONDS,
      );
      this.#readLines();
      if (!this.#isSettled(nowMs)) continue;
      await this.#changeSignal.waitUntil(
        () => this.#disconnectsByGateway >= this.#disconnectsByLock,
        STEP_TIMEOUT_SECONDS,
        describeDeadline,
      );
      return;
    }
  }

  /** Whether the lock waits for its next wake-up and has received all commands that it can receive. */
  #isSettled(nowMs: number): boolean {
    return this.#wake?.atMs === nowMs && !(this.#isConnected && this.#undeliveredCommands.size > 0);
  }

  /** Reads the new lines of the program's output. */
  #readLines(): void {
    const lines = this.#program.stdout;
    for (; this.#readCount < lines.length; this.#readCount += 1) {
      const line = lines[this.#readCount] as string;
      const [, at, due] = WAKE_LINE.exec(line) ?? [];
      this.#wake = at === undefined ? undefined : { atMs: Number(at), dueMs: due === 'never' ? Infinity : Number(due) };
      const [word, id] = line.split(' ');
      if (word === 'connected') this.#isConnected = true;
      if (word === 'command') this.#undeliveredCommands.delete(Number(id));
      if (word !== 'disconnected') continue;
      this.#isConnected = false;
      this.#disconnectsByLock += 1;
    }
  }
}

/** The time since midnight. */
function timeOfDay(text: string): Milliseconds {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number);
  return Minutes(hours * 60 + minutes) + seconds * 1000;
}
