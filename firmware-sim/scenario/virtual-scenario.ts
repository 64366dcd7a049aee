/**
 * Plays a scenario without a gateway and without waiting. Writes its trace, one event after another in order of time,
 * and collects findings: of the judge, which checks the locks' messages, and of the `owed` check, which compares these
 * messages with what truly happened. The same scenario and seed give the same events.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { TraceCheck } from '../../proto/trace/check.js';
import type { TraceFinding } from '../../proto/trace/findings.js';
import { OwedCheck, UNWRITTEN } from '../../proto/trace/owed/owed-check.js';
import type { TraceWorld } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { PingUplink, Uplink } from '../../proto/wire/ping.js';
import type { BugAssignment } from '../faults/bugs.js';
import { CommandQueue } from '../link/command-queue.js';
import { type DisconnectReason, MemoryGateway } from '../link/memory-link.js';
import { headerLockOf, TraceRecorder } from '../trace/trace-recorder.js';
import { VirtualClock } from '../virtual-clock.js';
import { checkScenario, type ScenarioVerdict } from './check.js';
import { ScenarioPlay, scenarioMacs } from './play.js';
import type { Scenario } from './scenario.js';

/** The scenario to play, and what to write of the run. */
export interface VirtualScenarioOptions {
  readonly scenario: Scenario;
  readonly seed: string;
  /** A note for readers of the trace. The same options must give the same note. */
  readonly note: string;
  /** Whether to write `world` events, the ground truth that the judge never reads. */
  readonly hasWorldEvents: boolean;
  readonly bugs?: readonly BugAssignment[];
  /** Takes a line of the trace without its line break; null if no trace is wanted. */
  readonly write: ((line: string) => void) | null;
}

/** A run of a scenario that the caller advances in steps. */
export class VirtualScenario {
  readonly play: ScenarioPlay;
  readonly #scenario: Scenario;
  readonly #clock: VirtualClock;
  readonly #check: TraceCheck;
  readonly #owed: OwedCheck;
  readonly #commandQueue: CommandQueue;
  readonly #recorder: TraceRecorder;
  /** The number of the last written line of the trace. The header is line 1. */
  #line = 1;
  #hasStarted = false;

  constructor({ scenario, seed, note, hasWorldEvents, bugs, write }: VirtualScenarioOptions) {
    const clock = new VirtualClock(scenario.startMs);
    // The functions below use members that are set further down. They are called at the earliest by `recorder.start`.
    const recorder = new TraceRecorder(write, (event) => {
      this.#line += 1;
      if (event.event === 'world') this.#compareWorld(event, this.#line);
      this.#owed.event(event, this.#line);
      this.#check.judge(event, this.#line);
    });
    // What truly happened is checked even if it is not written to the trace; `UNWRITTEN` takes the place of its line.
    const comparisonRecorder = new TraceRecorder(null, (event) => {
      if (event.event === 'world') this.#compareWorld(event, UNWRITTEN);
    });
    const listener = {
      connected: (mac: Mac) => this.#connected(mac),
      uplink: (mac: Mac, uplink: Uplink) => this.#uplink(mac, uplink),
      disconnected: (mac: Mac, cause: DisconnectReason) => this.#disconnected(mac, cause),
    };
    const gateway = new MemoryGateway(listener, clock);
    const commandQueue = new CommandQueue({
      clock,
      send: (mac, downlink) => gateway.send(mac, downlink),
      onSend: (mac, downlink) => recorder.command(mac, clock.now(), downlink),
    });
    this.#recorder = recorder;
    this.#commandQueue = commandQueue;
    this.#scenario = scenario;
    this.#clock = clock;
    this.play = new ScenarioPlay({
      scenario,
      seed,
      clock,
      startMs: scenario.startMs,
      macs: scenarioMacs(scenario, seed, scenario.startMs),
      openLink: gateway.open,
      actors: {
        command: (mac, command) => commandQueue.enqueue(mac, command),
        phone: (mac, uplink, acknowledged) => this.#phone(mac, uplink, acknowledged),
      },
      ...(bugs && { bugs }),
      diary: (mac, _atMs, entry) => (hasWorldEvents ? recorder : comparisonRecorder).world(mac, clock.now(), entry),
    });
    const locks = new Map(this.play.locks.map(({ mac, state }) => [mac, headerLockOf(state)]));
    this.#check = new TraceCheck(POWER_MODEL, { note, locks });
    // No `truthName`: the `world` events are in the trace itself, not in a file with another name.
    this.#owed = new OwedCheck({ model: POWER_MODEL, header: { note, locks }, truthName: null });
    recorder.start(note, clock.now(), locks);
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** Advances to `untilMs`. The first call starts the locks; at the end of the scenario the last line is written. */
  advance(untilMs: number): void {
    if (!this.#hasStarted) this.play.start();
    this.#hasStarted = true;
    const { endMs } = this.#scenario;
    if (this.nowMs >= endMs) return;
    this.#clock.run(Math.min(untilMs, endMs));
    if (this.nowMs >= endMs) this.#recorder.tick(endMs);
  }

  /** The result of each expectation. */
  verdicts(): ScenarioVerdict[] {
    return checkScenario(this.#scenario, this.play.records);
  }

  /**
   * The judge's findings, and those of the `owed` check: pings that what truly happened requires and that are missing.
   */
  findings(): TraceFinding[] {
    return [...this.#check.findings(), ...this.#owed.findings()].sort((a, b) => a.line - b.line);
  }

  /** Passes an event that truly happened to the `owed` check. */
  #compareWorld(event: TraceWorld, line: number): void {
    const accepted = this.#owed.world(event, line);
    if (!accepted.ok) throw new Error(accepted.error.message);
  }

  #connected(mac: Mac): void {
    this.#recorder.connect(mac, this.nowMs);
    this.#commandQueue.connected(mac);
  }

  #disconnected(mac: Mac, cause: DisconnectReason): void {
    this.#recorder.disconnect(mac, this.nowMs, cause);
    this.#commandQueue.disconnected(mac);
  }

  #uplink(mac: Mac, uplink: Uplink): void {
    this.#recorder.uplink(mac, this.nowMs, uplink);
    this.#commandQueue.uplink(mac, uplink);
  }

  /** A phone connects, sends its ping and disconnects, all at the same moment. */
  #phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void {
    const phone = { atMs: this.nowMs, mac, source: 'phone' } as const;
    this.#recorder.event({ event: 'connect', ...phone });
    this.#recorder.event({ event: 'ping', ...phone, uplink });
    acknowledged();
    this.#recorder.event({ event: 'disconnect', ...phone, cause: 'closed' });
  }
}
