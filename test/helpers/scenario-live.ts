/** A stock scenario over MQTT against a real gateway, and beside it the same without one. */
import { playLive } from '../../cli/scenario-live.js';
import { isAsExpected, type ScenarioOutcome } from '../../cli/scenario-report.js';
import { readScenarioFile } from '../../firmware-sim/scenario-reader.js';
import { pingsTimesAside, pingText } from '../../firmware-sim/scenario-record.js';
import { VirtualScenario } from '../../firmware-sim/scenario-virtual.js';
import { stockFile } from '../../firmware-sim/stock-scenarios.js';
import type { Gateway } from '../../gateway/gateway.js';

/** What a test gives to checks. */
interface Checks {
  same(found: unknown, wanted: unknown, message: string): boolean;
  ok(value: unknown, message: string): boolean;
  equal(found: unknown, wanted: unknown, message: string): boolean;
}

const NEVER = { signal: new AbortController().signal, exitCode: 130, happened: new Promise<void>(() => undefined) };

/** Plays it to its end. The gateway must run at the same speed. */
export async function playLiveAgainst(gateway: Gateway, name: string, speed: number): Promise<ScenarioOutcome> {
  const scenario = await readScenarioFile(stockFile(name));
  const place = { gateway: `http://127.0.0.1:${gateway.operatorPort}`, token: gateway.operatorToken };
  const { seed } = scenario;
  const flags = { ...place, speed, seed, pace: 'everyday', bug: [], fault: [], json: true } as const;
  const outcome = await playLive({ flags, scenario, seed, bugs: [], repeat: '', interrupted: NEVER });
  if (outcome === undefined) throw new Error('nobody interrupts a test');
  return outcome;
}

/** Holds a live run against what it expects, and against the virtual one: the same pings in the same order. */
export async function sameAsVirtual(t: Checks, live: ScenarioOutcome): Promise<void> {
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
    t.same(pingsTimesAside(told?.pings ?? []), pingsTimesAside(pings), `${name}: with the same content`);
  }
}
