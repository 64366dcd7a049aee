/**
 * A scenario without a gateway and without waiting: its trace, event by event in order of time, and the judge's word on
 * it. The same scenario and seed give the same events.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import { TraceCheck, type TraceFinding } from '../../proto/trace/check.js';
import type { TraceEvent, TraceHeader, TraceLock } from '../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { isPingUplink, type PingUplink, type Uplink } from '../../proto/wire/ping.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { BugOrder } from '../faults/bugs.js';
import { type LinkEnd, MemoryGateway } from '../link/memory-link.js';
import { CommandDesk } from '../lock/command-desk.js';
import { QueueClock } from '../lock/queue-clock.js';
import { worldMembers } from '../world/world-members.js';
import { checkScenario, type ScenarioVerdict } from './check.js';
import { ScenarioPlay, scenarioMacs } from './play.js';
import type { Scenario } from './scenario.js';

export interface VirtualScenarioOptions {
  readonly scenario: Scenario;
  readonly seed: string;
  /** For people; the same options must give the same note. */
  readonly note: string;
  /** Whether to tell what truly happened, which the judge never reads. */
  readonly world: boolean;
  readonly bugs?: readonly BugOrder[];
  /** Takes a line of the trace, without its end of line; null where nobody wants them. */
  readonly write: ((line: string) => void) | null;
}

export class VirtualScenario {
  readonly play: ScenarioPlay;
  readonly #scenario: Scenario;
  readonly #clock: QueueClock;
  readonly #check: TraceCheck;
  readonly #desk: CommandDesk;
  readonly #write: ((line: string) => void) | null;
  /** Of the trace: the header is the first. */
  #line = 1;
  #hasBegun = false;
  connections = 0;
  uplinks = 0;

  constructor({ scenario, seed, note, world, bugs, write }: VirtualScenarioOptions) {
    const clock = new QueueClock(scenario.startMs);
    const listener = {
      connected: (mac: Mac) => this.#connected(mac),
      uplink: (mac: Mac, uplink: Uplink) => this.#uplink(mac, uplink),
      ended: (mac: Mac, cause: LinkEnd) => this.#ended(mac, cause),
    };
    const gateway = new MemoryGateway(listener, clock);
    const desk = new CommandDesk({
      clock,
      send: (mac, downlink) => gateway.send(mac, downlink),
      onSend: (mac, { id, command, expiresMs }) =>
        this.#event({ event: 'command', atMs: clock.now(), mac, id, command, expiresMs }),
    });
    this.#desk = desk;
    this.#scenario = scenario;
    this.#clock = clock;
    this.#write = write;
    this.play = new ScenarioPlay({
      scenario,
      seed,
      clock,
      startMs: scenario.startMs,
      macs: scenarioMacs(scenario, seed, scenario.startMs),
      openLink: gateway.open,
      actors: {
        command: (mac, command) => desk.ask(mac, command),
        phone: (mac, uplink, acknowledged) => this.#phone(mac, uplink, acknowledged),
      },
      ...(bugs && { bugs }),
      ...(world && { diary: (mac, _atMs, entry) => this.#world(mac, worldMembers(entry)) }),
    });
    const locks = new Map(this.play.locks.map(({ mac, state }): [Mac, TraceLock] => [mac, firstState(state)]));
    const header: TraceHeader = { note, locks };
    this.#check = new TraceCheck(POWER_MODEL, header);
    write?.(traceHeaderLine(header));
    this.#event({ event: 'gateway', atMs: clock.now(), state: 'start' });
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** Goes on to `untilMs`; the first call gives the locks power, and at the end the last line is written. */
  advance(untilMs: number): void {
    if (!this.#hasBegun) this.play.start();
    this.#hasBegun = true;
    const { endMs } = this.#scenario;
    if (this.nowMs >= endMs) return;
    this.#clock.run(Math.min(untilMs, endMs));
    if (this.nowMs >= endMs) this.#event({ event: 'tick', atMs: endMs });
  }

  /** What came of the expectations. */
  verdicts(): ScenarioVerdict[] {
    return checkScenario(this.#scenario, this.play.records);
  }

  /** What the judge found. */
  findings(): TraceFinding[] {
    return this.#check.findings();
  }

  #of<Source extends 'lock' | 'phone'>(mac: Mac, source: Source): { atMs: number; mac: Mac; source: Source } {
    return { atMs: this.#clock.now(), mac, source };
  }

  #event(event: TraceEvent): void {
    this.#line += 1;
    this.#check.judge(event, this.#line);
    this.#write?.(traceEventLine(event));
  }

  #connected(mac: Mac): void {
    this.connections += 1;
    this.#event({ event: 'connect', ...this.#of(mac, 'lock') });
    this.#desk.connected(mac);
  }

  #ended(mac: Mac, cause: LinkEnd): void {
    this.#event({ event: 'disconnect', ...this.#of(mac, 'lock'), cause });
    this.#desk.ended(mac);
  }

  #uplink(mac: Mac, uplink: Uplink): void {
    this.uplinks += 1;
    if (isPingUplink(uplink)) this.#event({ event: 'ping', ...this.#of(mac, 'lock'), uplink });
    else if (uplink.body.kind === 'ack')
      this.#event({ event: 'ack', ...this.#of(mac, 'lock'), uplink: { ...uplink, body: uplink.body } });
    this.#desk.uplink(mac, uplink);
  }

  #phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void {
    const of = this.#of(mac, 'phone');
    this.#event({ event: 'connect', ...of });
    this.uplinks += 1;
    this.#event({ event: 'ping', ...of, uplink });
    acknowledged();
    this.#event({ event: 'disconnect', ...of, cause: 'closed' });
  }

  #world(mac: Mac, happened: Record<string, unknown> | undefined): void {
    if (happened === undefined) return;
    const atMs = this.#clock.now();
    const members = { at: toDate(atMs), mac: formatMac(mac), event: 'world', ...happened };
    this.#event({ event: 'world', atMs, mac, members });
  }
}

function firstState({ power, lockState }: ScenarioPlay['locks'][number]['state']): TraceLock {
  return { power, highWindow: null, lockState, connected: false, lastPeriodMs: null };
}
