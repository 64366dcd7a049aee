/**
 * A million mutated MQTT packets, sent before and after authentication, neither disturb honest locks nor leak memory
 * (quality.md §2, "MQTT 3.1.1 conformance"). The long version of a test in test/gateway/mqtt/conformance.test.ts.
 * LOCKGATE_SEED and LOCKGATE_MUTATED set another seed and number; a failure prints its seed.
 */
import t from 'tap';
import { Minutes } from '../../proto/clock.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { runMutated } from '../helpers/mqtt/mutated-run.js';
import { runOverSockets, stableDescriptorCount } from '../helpers/mqtt/mutated-sockets.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const MUTATED = Number(process.env.LOCKGATE_MUTATED ?? 1_000_000);
/** The share of packets sent as a warm-up, after which the gateway's memory should no longer grow. */
const WARM_UP_SHARE = 0.1;
/** Packets of the part without sockets, which counts turns of the event loop. */
const IN_PROCESS_PACKETS = MUTATED / 20;
const MIB = 1024 * 1024;
/** How much the memory may grow after the warm-up: a leak of 100 bytes a packet would exceed it. */
const MAX_GROWTH_BYTES = 64 * MIB;
const STOP_TIMEOUT_SECONDS = 20;

t.setTimeout(Minutes(120));

const seed = chooseSeed();
const repeat = 'npm test -- dist/test/long/mutated-packets.test.js';
t.comment(`seed ${seed}; LOCKGATE_SEED=${seed} LOCKGATE_MUTATED=${MUTATED} ${repeat} repeats it`);

t.test('mutated packets in one process delay no honest ping and leave no connection', async (t) => {
  const result = await runMutated(t, seed, IN_PROCESS_PACKETS);
  t.same(result.faults, [], `LOCKGATE_SEED=${seed} LOCKGATE_MUTATED=${MUTATED}`);
  t.comment(
    `${result.mutated} packets in ${result.streams} streams; an honest ping waited ${result.maxTurns} turns at most`,
  );
  t.equal(result.openConnections, 0, 'no connection is open at the end');
});

t.test('mutated packets over sockets leak neither memory nor descriptors', async (t) => {
  const child = await GatewayChild.start(t);
  const pid = child.program.pid ?? 0;
  // The second argument numbers the runs.
  const warmUp = await runOverSockets(child, 0, seed, Math.ceil(MUTATED * WARM_UP_SHARE));
  const descriptors = await stableDescriptorCount(pid);
  const before = child.memory().resident;
  const measured = await runOverSockets(child, 1, seed + warmUp.streams, Math.floor(MUTATED * (1 - WARM_UP_SHARE)));
  const after = child.memory();
  const [streams, mutated] = [warmUp.streams + measured.streams, warmUp.mutated + measured.mutated];
  t.comment(`${mutated} packets in ${streams} connections, ${warmUp.accepted + measured.accepted} accepted`);
  t.same([...warmUp.faults, ...measured.faults], []);
  const waitsMs = [...warmUp.waitsMs, ...measured.waitsMs].sort((a, b) => a - b);
  const quantile = (share: number): string => (waitsMs[Math.floor((waitsMs.length - 1) * share)] ?? 0).toFixed(1);
  const waits = `p50 ${quantile(0.5)}, p99 ${quantile(0.99)}, maximum ${quantile(1)} ms`;
  t.comment(`${waitsMs.length} honest pings, all acknowledged: ${waits}`);
  t.ok(waitsMs.length > 0);
  const growth = after.resident - before;
  t.comment(`${Math.round(before / MIB)} MB resident after a tenth, ${Math.round(after.resident / MIB)} MB at the end`);
  t.ok(growth < MAX_GROWTH_BYTES, `memory grew by ${Math.round(growth / MIB)} MB`);
  const descriptorsAtEnd = await stableDescriptorCount(pid);
  t.ok(descriptorsAtEnd <= descriptors, `${descriptorsAtEnd} open descriptors, ${descriptors} after the warm-up`);
  t.equal(await child.stop(STOP_TIMEOUT_SECONDS), 0, 'the gateway stops normally');
  t.same(child.errorLines, []);
});
