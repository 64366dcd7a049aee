/**
 * Plays built-in scenarios over MQTT with a real gateway, and compares them with the same scenarios without a gateway.
 * A scenario scripts what happens to some simulated locks, and lists expectations. The clock is either a fast clock, or
 * a synchronised clock: a virtual clock that gateway and locks share, and that stops while any message is in transit.
 */
import { GatewayClient } from '../../../cli/client.js';
import { LiveActors } from '../../../cli/commands/sim/scenario/actors.js';
import { playLive } from '../../../cli/commands/sim/scenario/live.js';
import { hasPassed, type ScenarioOutcome } from '../../../cli/commands/sim/scenario/report.js';
import { provisionLocks } from '../../../cli/commands/trace/replay/secrets.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { builtInFile } from '../../../firmware-sim/scenario/built-in.js';
import { checkScenario } from '../../../firmware-sim/scenario/check.js';
import { pingsWithoutTimes, pingText } from '../../../firmware-sim/scenario/lock-record.js';
import { type Actors, ScenarioPlay, scenarioMacs } from '../../../firmware-sim/scenario/play.js';
import { readScenarioFile } from '../../../firmware-sim/scenario/reader.js';
import type { Scenario } from '../../../firmware-sim/scenario/scenario.js';
import { VirtualScenario } from '../../../firmware-sim/scenario/virtual-scenario.js';
import { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { afterThisTurn, monotonicMs, Seconds } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { MERCHANT, testGateway } from '../gateway/test-gateway.js';
import type { Teardown } from '../store/temp-folder.js';

/** An interrupt signal that never comes. */
const NO_INTERRUPT = {
  signal: new AbortController().signal,
  exitCode: 130,
  happened: new Promise<void>(() => undefined),
};

/** The assertions of a test that this file uses. */
interface Checks {
  same(actual: unknown, wanted: unknown, message: string): boolean;
  ok(value: unknown, message: string): boolean;
  equal(actual: unknown, wanted: unknown, message: string): boolean;
}

/** Where the operators' interface of the gateway is, and its token. */
function operatorOf(gateway: Gateway): { readonly gateway: string; readonly token: string } {
  return { gateway: `http://127.0.0.1:${gateway.operatorPort}`, token: gateway.operatorToken };
}

/** Plays a scenario to its end as `sim run` does. The gateway must run at the same speed. */
export async function playLiveAgainst(gateway: Gateway, name: string, speed: number): Promise<ScenarioOutcome> {
  const scenario = await readScenarioFile(builtInFile(name));
  const { seed } = scenario;
  const flags = { ...operatorOf(gateway), speed, seed, pace: 'everyday', bug: [], fault: [], json: true } as const;
  const outcome = await playLive({ flags, scenario, seed, bugs: [], repeat: '', interrupted: NO_INTERRUPT });
  if (outcome === undefined) throw new Error('the scenario was interrupted');
  return outcome;
}

/** One of several scenarios that share the synchronised clock. */
interface SynchronisedPlay {
  readonly scenario: Scenario;
  readonly play: ScenarioPlay;
  /** What sends the commands and the messages of phones that the scenario contains. */
  readonly actors: LiveActors;
  /** The number of commands sent to each lock, by MAC. */
  readonly sent: Map<Mac, number>;
  isOver: boolean;
  /** The number of the gateway's findings by rule. Findings after the scenario, when the locks are off, are ignored. */
  findings: ReadonlyMap<string, number>;
}

/** How long a message may be in transit before the test fails, in real time. */
const MAX_IN_TRANSIT_MS = Seconds(20);

/** Plays several built-in scenarios of the same day at once, with one gateway and a synchronised clock. */
export async function playSynchronised(t: Teardown, names: readonly string[]): Promise<ScenarioOutcome[]> {
  const scenarios = await Promise.all(names.map((name) => readScenarioFile(builtInFile(name))));
  const clock = new VirtualClock(Math.min(...scenarios.map(({ startMs }) => startMs)));
  const gateway = await testGateway(t, { runClock: clock });
  // Connections are counted: a lock may reconnect before the gateway notices the end of its old connection.
  const connected = new Map<string, number>();
  const count = (mac: string, change: number): void => void connected.set(mac, (connected.get(mac) ?? 0) + change);
  gateway.events.on('connected', ({ mac, source }) => void (source === 'lock' && count(mac, 1)));
  gateway.events.on('disconnected', ({ mac, source }) => void (source === 'lock' && count(mac, -1)));
  const findingsByMac = new Map<string, Map<string, number>>();
  gateway.events.on('uplink', ({ mac, findings }) => addFindings(findingsByMac, mac, findings));
  gateway.events.on('finding', ({ mac, finding }) => addFindings(findingsByMac, mac, [finding]));
  const runningPlays: SynchronisedPlay[] = [];
  for (const scenario of scenarios) runningPlays.push(await preparePlay(scenario, gateway, clock));
  const endMs = Math.max(...scenarios.map((scenario) => scenario.endMs));
  for (const runningPlay of runningPlays) {
    const { scenario, play } = runningPlay;
    clock.after(scenario.startMs - clock.now(), () => play.start());
    clock.after(scenario.endMs - clock.now(), () => {
      runningPlay.isOver = true;
      runningPlay.findings = sumOfCounts(play.locks.map(({ mac }) => findingsByMac.get(mac) ?? new Map()));
      void play.stop();
    });
  }
  while (clock.now() < endMs) {
    await waitUntilIdle(runningPlays, connected);
    clock.run(Math.min(clock.nextDueMs, endMs));
  }
  return await Promise.all(runningPlays.map(outcomeOf));
}

async function preparePlay(scenario: Scenario, gateway: Gateway, clock: VirtualClock): Promise<SynchronisedPlay> {
  const client = new GatewayClient(operatorOf(gateway));
  const macs = scenarioMacs(scenario, scenario.seed, scenario.startMs);
  const secrets = await provisionLocks(client, new Set(macs), MERCHANT, NO_INTERRUPT.signal);
  const address = { host: '127.0.0.1', port: gateway.mqttPort };
  // The locks are new, so they have not booted before.
  const bootsBefore = 0;
  const live = new LiveActors({ client, address, macs }, bootsBefore);
  await live.prepare(scenario);
  const countingActors: Actors = {
    command: (mac, command) => {
      runningPlay.sent.set(mac, (runningPlay.sent.get(mac) ?? 0) + 1);
      live.command(mac, command);
    },
    phone: (mac, uplink, acknowledged) => live.phone(mac, uplink, acknowledged),
  };
  const play = new ScenarioPlay({
    scenario,
    seed: scenario.seed,
    clock,
    startMs: scenario.startMs,
    macs,
    actors: countingActors,
    openLink: mqttLinks(address, (mac) => secrets.get(mac) ?? ''),
  });
  const runningPlay: SynchronisedPlay = {
    scenario,
    play,
    actors: live,
    sent: new Map(),
    isOver: false,
    findings: new Map(),
  };
  return runningPlay;
}

/**
 * Waits until nothing is in transit: no connect, no ping, no command, no disconnect that the gateway has not noticed.
 */
async function waitUntilIdle(
  runningPlays: readonly SynchronisedPlay[],
  connected: ReadonlyMap<string, number>,
): Promise<void> {
  const sinceMs = monotonicMs();
  for (;;) {
    const busy = runningPlays.find((runningPlay) => isBusy(runningPlay, connected));
    if (busy === undefined) return;
    if (monotonicMs() - sinceMs > MAX_IN_TRANSIT_MS)
      throw new Error(`${busy.scenario.name}: still in transit: ${pendingWork(busy)}`);
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

/** Whether a message of this scenario is still in transit. */
function isBusy({ play, actors, sent, isOver }: SynchronisedPlay, connected: ReadonlyMap<string, number>): boolean {
  if (isOver) return false;
  if (actors.inProgress > 0) return true;
  // The records of the locks, in the order of the locks.
  const records = [...play.records.values()];
  return play.locks.some(({ mac, state }, index) => {
    if (state.link === 'connecting' || state.link === 'ending' || state.inFlight) return true;
    // The gateway sends a queued command as soon as its lock is connected and has answered the command before.
    const commands = records[index]?.commands ?? [];
    const isExecuting = commands.at(-1)?.result === null;
    const awaitsCommand = state.link === 'up' && !isExecuting && commands.length < (sent.get(mac) ?? 0);
    return awaitsCommand || (connected.get(mac) ?? 0) !== (state.link === 'up' ? 1 : 0);
  });
}

/** What is still in transit, for the error message. */
function pendingWork({ play, actors, sent }: SynchronisedPlay): string {
  const links = play.locks.map(({ state }) => `${state.link}${state.inFlight ? ', a ping in flight' : ''}`);
  const sentTo = [...sent].map(([mac, count]) => `${count} to ${mac}`).join(', ');
  return `${actors.inProgress} actions in progress, links ${links.join('; ')}, commands sent: ${sentTo}`;
}

/** Adds findings to the counts by lock and rule. */
function addFindings(
  findingsByMac: Map<string, Map<string, number>>,
  mac: Mac | string,
  findings: readonly { rule: string }[],
): void {
  const counts = findingsByMac.get(mac) ?? new Map<string, number>();
  for (const { rule } of findings) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  findingsByMac.set(mac, counts);
}

/** The counts of several locks added up, by rule. */
function sumOfCounts(countsOfLocks: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const counts of countsOfLocks) for (const [rule, count] of counts) sum.set(rule, (sum.get(rule) ?? 0) + count);
  return sum;
}

async function outcomeOf({ scenario, play, actors, findings }: SynchronisedPlay): Promise<ScenarioOutcome> {
  await play.stop();
  await actors.close();
  if (actors.firstError !== undefined) throw actors.firstError;
  const { records, unacknowledged } = play;
  const pings = [...records.values()].reduce((sum, record) => sum + record.pings.length, 0);
  const verdicts = checkScenario(scenario, records);
  return { scenario, verdicts, findings, pings, records, unacknowledged, run: {}, repeat: '' };
}

/** Checks that a run over MQTT met its expectations, and made the same pings in the same order as a virtual run. */
export function checkLiveOutcome(t: Checks, live: ScenarioOutcome): void {
  const { scenario } = live;
  const { name, seed } = scenario;
  // It writes no trace: only its records of the locks are needed.
  const run = new VirtualScenario({ scenario, seed, note: '', hasWorldEvents: false, write: null });
  run.advance(scenario.endMs);
  const unmet = live.verdicts.filter(({ isMet }) => !isMet);
  t.same(
    unmet.map(({ expectation, seen }) => `${expectation.line}: ${expectation.sentence}; ${seen}`),
    [],
    `${name}: all expectations are met`,
  );
  t.ok(hasPassed(live), `${name}: only expected findings: ${JSON.stringify([...(live.findings ?? [])])}`);
  t.equal(live.unacknowledged, 0, `${name}: every ping was acknowledged`);
  // The order in which pings were made is compared. They may arrive in another order: theft pings are sent first
  // (protocol.md §2).
  for (const [lock, { pings }] of run.play.records) {
    // The same lock in the other run, by its name in the scenario.
    const record = live.records.get(lock);
    t.same(record?.pings.map(pingText), pings.map(pingText), `${name}: ${lock} made the same pings`);
    t.same(pingsWithoutTimes(record?.pings ?? []), pingsWithoutTimes(pings), `${name}: with the same content`);
  }
}
