/**
 * The long form of the mutated packets in test/gateway/mqtt/conformance.test.ts (quality.md §2, "MQTT 3.1.1
 * conformance"): a million of them over real sockets, before and after authentication, while honest locks ping.
 * LOCKGATE_SEED and LOCKGATE_MUTATED (how many) choose others; a fault says which seed repeats it.
 */
import t from 'tap';
import { Minutes } from '../../proto/clock.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { runMutated } from '../helpers/mqtt/mutated-run.js';
import { runOverSockets, settledDescriptors } from '../helpers/mqtt/mutated-sockets.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const MUTATED = Number(process.env.LOCKGATE_MUTATED ?? 1_000_000);
/** Of those, how many the first part sends, behind which the gateway has the memory that it needs. */
const WARM_SHARE = 0.1;
/** How many in one process, where turns of the event loop are counted. */
const IN_TURNS = MUTATED / 20;
const MIB = 1024 * 1024;
/** What the other nine tenths may add to the gateway's memory: a leak of 100 bytes a packet would be more. */
const MOST_GROWTH_BYTES = 64 * MIB;

t.setTimeout(Minutes(120));

const seed = chooseSeed();
const repeat = 'npm test -- dist/test/long/mutated-packets.test.js';
t.comment(`seed ${seed}; LOCKGATE_SEED=${seed} LOCKGATE_MUTATED=${MUTATED} ${repeat} repeats it`);

t.test('mutated packets in one process', async (t) => {
  const seen = await runMutated(t, seed, IN_TURNS);
  t.same(seen.faults, [], `LOCKGATE_SEED=${seed} LOCKGATE_MUTATED=${MUTATED}`);
  t.comment(
    `${seen.mutated} packets in ${seen.streams} streams; an honest ping waited ${seen.mostTurns} turns at most`,
  );
  t.equal(seen.left, 0, 'no connection is left');
});

t.test('mutated packets over sockets', async (t) => {
  const child = await GatewayChild.start(t);
  const pid = child.program.pid ?? 0;
  const warm = await runOverSockets(child, 0, seed, Math.ceil(MUTATED * WARM_SHARE));
  const descriptors = await settledDescriptors(pid);
  const before = child.memory().resident;
  const rest = await runOverSockets(child, 1, seed + warm.streams, Math.floor(MUTATED * (1 - WARM_SHARE)));
  const after = child.memory();
  const [streams, mutated] = [warm.streams + rest.streams, warm.mutated + rest.mutated];
  t.comment(`${mutated} packets in ${streams} connections, ${warm.letIn + rest.letIn} let in`);
  t.same([...warm.faults, ...rest.faults], []);
  const waitsMs = [...warm.waitsMs, ...rest.waitsMs].sort((a, b) => a - b);
  const at = (share: number): string => (waitsMs[Math.floor((waitsMs.length - 1) * share)] ?? 0).toFixed(1);
  t.comment(`${waitsMs.length} honest pings, all acknowledged: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)} ms`);
  t.ok(waitsMs.length > 0);
  const growth = after.resident - before;
  t.comment(`${Math.round(before / MIB)} MB resident after a tenth, ${Math.round(after.resident / MIB)} MB at the end`);
  t.ok(growth < MOST_GROWTH_BYTES, `it grew by ${Math.round(growth / MIB)} MB`);
  const left = await settledDescriptors(pid);
  t.ok(left <= descriptors, `${left} open descriptors, and ${descriptors} after a tenth`);
  t.equal(await child.stop(20), 0, 'it ends by itself');
  t.same(child.complaints, []);
});
