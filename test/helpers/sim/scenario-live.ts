/**
 * Stock scenarios over MQTT against a real gateway, and beside them the same without one: by a clock that runs fast, or
 * in step, by one that the gateway and the locks share and that stands still while anything is on its way.
 */
import { GatewayClient } from '../../../cli/client.js';
import { LiveActors } from '../../../cli/commands/sim/scenario/actors.js';
import { playLive } from '../../../cli/commands/sim/scenario/live.js';
import { isAsExpected, type ScenarioOutcome } from '../../../cli/commands/sim/scenario/report.js';
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

const NEVER = { signal: new AbortController().signal, exitCode: 130, happened: new Promise<void>(() => undefined) };

/** What a test gives to checks. */
interface Checks {
  same(found: unknown, wanted: unknown, message: string): boolean;
  ok(value: unknown, message: string): boolean;
  equal(found: unknown, wanted: unknown, message: string): boolean;
}

function operatorOf(gateway: Gateway): { readonly gateway: string; readonly token: string } {
  return { gateway: `http://127.0.0.1:${gateway.operatorPort}`, token: gateway.operatorToken };
}

/** Plays one to its end as `sim run` does. The gateway must run at the same speed. */
export async function playLiveAgainst(gateway: Gateway, name: string, speed: number): Promise<ScenarioOutcome> {
  const scenario = await readScenarioFile(builtInFile(name));
  const { seed } = scenario;
  const flags = { ...operatorOf(gateway), speed, seed, pace: 'everyday', bug: [], fault: [], json: true } as const;
  const outcome = await playLive({ flags, scenario, seed, bugs: [], repeat: '', interrupted: NEVER });
  if (outcome === undefined) throw new Error('nobody interrupts a test');
  return outcome;
}

/** One of several that are played in step. */
interface InStep {
  readonly scenario: Scenario;
  readonly play: ScenarioPlay;
  readonly actors: LiveActors;
  /** Commands that were sent. */
  sent: number;
  isOver: boolean;
  /** What the gateway found until its end: of what comes after, when its locks have no power, nothing is expected. */
  findings: ReadonlyMap<string, number>;
}

/** How long something may be on its way until the test says so, in real time. */
const ON_ITS_WAY_MOST = Seconds(20);

/** Plays stock scenarios that begin on one day, all at once, against one gateway. */
export async function playInStep(t: Teardown, names: readonly string[]): Promise<ScenarioOutcome[]> {
  const scenarios = await Promise.all(names.map((name) => readScenarioFile(builtInFile(name))));
  const clock = new VirtualClock(Math.min(...scenarios.map(({ startMs }) => startMs)));
  const gateway = await testGateway(t, { runClock: clock });
  // A lock that comes back at once may be there before the end of its old connection is seen: they are counted.
  const connected = new Map<string, number>();
  const count = (mac: string, more: number): void => void connected.set(mac, (connected.get(mac) ?? 0) + more);
  gateway.events.on('connected', ({ mac, source }) => void (source === 'lock' && count(mac, 1)));
  gateway.events.on('disconnected', ({ mac, source }) => void (source === 'lock' && count(mac, -1)));
  const found = new Map<string, Map<string, number>>();
  gateway.events.on('uplink', ({ mac, findings }) => note(found, mac, findings));
  gateway.events.on('finding', ({ mac, finding }) => note(found, mac, [finding]));
  const players: InStep[] = [];
  for (const scenario of scenarios) players.push(await inStep(scenario, gateway, clock));
  const endMs = Math.max(...scenarios.map((scenario) => scenario.endMs));
  for (const player of players) {
    const { scenario, play } = player;
    clock.after(scenario.startMs - clock.now(), () => play.start());
    clock.after(scenario.endMs - clock.now(), () => {
      player.isOver = true;
      player.findings = new Map(play.locks.flatMap(({ mac }) => [...(found.get(mac) ?? [])]));
      void play.stop();
    });
  }
  while (clock.now() < endMs) {
    await quiet(players, connected);
    clock.run(Math.min(clock.nextDueMs, endMs));
  }
  return await Promise.all(players.map(outcomeOf));
}

async function inStep(scenario: Scenario, gateway: Gateway, clock: VirtualClock): Promise<InStep> {
  const client = new GatewayClient(operatorOf(gateway));
  const macs = scenarioMacs(scenario, scenario.seed, scenario.startMs);
  const secrets = await provisionLocks(client, new Set(macs), MERCHANT, NEVER.signal);
  const address = { host: '127.0.0.1', port: gateway.mqttPort };
  const live = new LiveActors({ client, address, macs }, 0);
  await live.prepare(scenario);
  const counting: Actors = {
    command: (mac, command) => {
      player.sent += 1;
      live.command(mac, command);
    },
    phone: (mac, uplink, acknowledged) => live.phone(mac, uplink, acknowledged),
  };
  const play = new ScenarioPlay({
    ...{ scenario, seed: scenario.seed, clock, startMs: scenario.startMs, macs, actors: counting },
    openLink: mqttLinks(address, (mac) => secrets.get(mac) ?? ''),
  });
  const player: InStep = { scenario, play, actors: live, sent: 0, isOver: false, findings: new Map() };
  return player;
}

/** Waits until nothing is on its way: no connect, no ping, no command, no end that the gateway has not seen. */
async function quiet(players: readonly InStep[], connected: ReadonlyMap<string, number>): Promise<void> {
  const sinceMs = monotonicMs();
  for (;;) {
    const busy = players.find((player) => isBusy(player, connected));
    if (busy === undefined) return;
    if (monotonicMs() - sinceMs > ON_ITS_WAY_MOST)
      throw new Error(`${busy.scenario.name}: still on its way: ${why(busy)}`);
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

function isBusy({ play, actors, sent, isOver }: InStep, connected: ReadonlyMap<string, number>): boolean {
  if (isOver) return false;
  if (actors.underWay > 0) return true;
  const received = [...play.records.values()].reduce((sum, { commands }) => sum + commands.length, 0);
  return play.locks.some(({ mac, state }) => {
    if (state.link === 'connecting' || state.link === 'ending' || state.inFlight) return true;
    // A command that waits for a lock leaves as soon as it is connected.
    const awaitsCommand = state.link === 'up' && received < sent;
    return awaitsCommand || (connected.get(mac) ?? 0) !== (state.link === 'up' ? 1 : 0);
  });
}

function why({ play, actors, sent }: InStep): string {
  const links = play.locks.map(({ state }) => `${state.link}${state.inFlight ? ', a ping in flight' : ''}`);
  return `${actors.underWay} deeds, links ${links.join('; ')}, ${sent} commands sent`;
}

function note(found: Map<string, Map<string, number>>, mac: Mac | string, findings: readonly { rule: string }[]): void {
  const ofLock = found.get(mac) ?? new Map<string, number>();
  for (const { rule } of findings) ofLock.set(rule, (ofLock.get(rule) ?? 0) + 1);
  found.set(mac, ofLock);
}

async function outcomeOf({ scenario, play, actors, findings }: InStep): Promise<ScenarioOutcome> {
  await play.stop();
  await actors.close();
  if (actors.trouble !== undefined) throw actors.trouble;
  const { records, unacknowledged } = play;
  const pings = [...records.values()].reduce((sum, record) => sum + record.pings.length, 0);
  const verdicts = checkScenario(scenario, records);
  return { scenario, verdicts, findings, pings, records, unacknowledged, run: {}, repeat: '' };
}

/** Holds a run over MQTT against what it expects, and against the virtual one: the same pings in the same order. */
export function sameAsVirtual(t: Checks, live: ScenarioOutcome): void {
  const { scenario } = live;
  const { name, seed } = scenario;
  const run = new VirtualScenario({ scenario, seed, note: '', world: false, write: null });
  run.advance(scenario.endMs);
  const unmet = live.verdicts.filter(({ isMet }) => !isMet);
  t.same(
    unmet.map(({ expectation, seen }) => `${expectation.line}: ${expectation.sentence}; ${seen}`),
    [],
    `${name}: what it expects`,
  );
  t.ok(isAsExpected(live), `${name}: found ${JSON.stringify([...(live.findings ?? [])])}`);
  t.equal(live.unacknowledged, 0, `${name}: all has arrived`);
  // Made, not arrived: a theft's cellular ping overtakes what the line has not yet carried (protocol.md §2).
  for (const [lock, { pings }] of run.play.records) {
    const told = live.records.get(lock);
    t.same(told?.pings.map(pingText), pings.map(pingText), `${name}: ${lock} made the same pings`);
    t.same(pingsWithoutTimes(told?.pings ?? []), pingsWithoutTimes(pings), `${name}: with the same content`);
  }
}
