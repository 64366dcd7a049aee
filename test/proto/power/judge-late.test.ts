// Checks late data (protocol.md §3): whatever the order in which uplinks arrive, and however often, the judge ends with
// the same belief about the lock's state and the same findings about content. The judge checks a lock's messages. The
// test compares uplinks in order with the same uplinks in random order.
import fc from 'fast-check';
import t from 'tap';
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import type { CommandAck, Ping, Uplink } from '../../../proto/wire/ping.js';
import { cellular, JudgedRun, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';

/**
 * The id of the command that switches airplane mode on. Some acknowledgements have this id, the others answer nothing.
 */
const AIRPLANE_COMMAND_ID = 7;

/** An uplink, and the credential under which it is sent: a lock with a new secret numbers its uplinks from 1 again. */
interface SentUplink {
  credential: number;
  uplink: Uplink;
}

const lockStates = fc.constantFrom('locked', 'unlocked', 'unknown') as fc.Arbitrary<'locked' | 'unlocked' | 'unknown'>;
const batteryPercents = fc.constantFrom(5, 9, 10, 80, 101);

const bodies: fc.Arbitrary<Ping | CommandAck> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({
        reason: fc.constantFrom('REASON_STATE_PING', 'REASON_PERIOD_TRACKING', 'REASON_THEFT', 'REASON_CELL_PING'),
        lockState: lockStates,
        batteryPercent: batteryPercents,
        latitude: fc.constantFrom(null, 10, 20, 91),
      })
      .map(({ latitude, ...members }) =>
        cellular({
          ...(members as Partial<ReturnType<typeof cellular>>),
          position:
            latitude === null ? null : { latitudeDegrees: latitude, longitudeDegrees: 5, uncertaintyMeters: 30 },
        }),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('close_connection' as const),
      reason: fc.constant('REASON_CLOSE_CONNECTION' as const),
      lockState: lockStates,
      batteryPercent: batteryPercents,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(AIRPLANE_COMMAND_ID, 8).map((commandId) => ({
      kind: 'ack' as const,
      commandId,
      result: 'ok' as const,
      detail: '',
      // Derived from the id, so that the two acknowledgements report different windows.
      highWindow: { fromMinute: commandId * 10, toMinute: 600, utcOffsetMinutes: 0 },
    })),
  },
);

/**
 * The uplinks of a lock in order: boots and sequences increase, with gaps; the lock's clock may jump back. How often a
 * list repeats a value sets how likely the value is.
 */
const histories: fc.Arbitrary<SentUplink[]> = fc
  .array(
    fc.record({
      body: bodies,
      sequenceIncrease: fc.constantFrom(1, 1, 1, 1, 1, 1, 2, 3),
      isReboot: fc.constantFrom(false, false, false, false, false, false, false, true),
      isNewCredential: fc.constantFrom(...Array<boolean>(14).fill(false), true),
      airplane: fc.constantFrom(false, false, true),
      wait: fc.constantFrom(Minutes(1), Minutes(4), Minutes(9), Minutes(11), Hours(11), Hours(23), Hours(-12), Days(1)),
    }),
    { minLength: 2, maxLength: 24 },
  )
  .map((steps) => {
    let [credential, boot, sequence, timeMs] = [0, 1, 0, START_MS];
    return steps.map((step) => {
      if (step.isNewCredential) credential += 1;
      if (step.isReboot) [boot, sequence] = [boot + 1, 0];
      sequence += step.sequenceIncrease;
      timeMs += step.wait;
      const power = { airplane: step.airplane };
      // With `kept` = 0 a close-connection ping would say that no earlier uplink can still come.
      return { credential, uplink: uplink({ boot, sequence, timeMs, power, body: step.body, kept: 1 }) };
    });
  });

/** Judges the uplinks in the given order, one each minute, over one connection. */
function judgeArrivals(uplinks: readonly SentUplink[], initialLockState: 'locked' | 'unknown'): JudgedRun {
  const judged = new JudgedRun(START_MS, {
    lockState: initialLockState,
    listeningSinceMs: START_MS,
    lastPeriodMs: START_MS - Hours(3),
  });
  judged.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  const command = { type: 'set-power', airplane: true } as const;
  judged.judge({ type: 'command', id: AIRPLANE_COMMAND_ID, command, atMs: START_MS });
  let atMs = START_MS;
  for (const { uplink, credential } of uplinks) {
    atMs += Minutes(1);
    judged.receive(uplink, atMs, credential);
  }
  return judged;
}

t.test('any order and repetition of uplinks leads to the same belief and the same findings', async (t) => {
  const shuffled = histories.chain((history) =>
    fc.record({
      history: fc.constant(history),
      arrivals: fc
        .tuple(
          fc.shuffledSubarray(history, { minLength: history.length, maxLength: history.length }),
          fc.array(fc.nat({ max: history.length - 1 }), { maxLength: 8 }),
        )
        .map(([order, repeats]) => [...order, ...repeats.map((index) => history[index] as SentUplink)]),
      initial: fc.constantFrom('locked' as const, 'unknown' as const),
    }),
  );
  let withFindings = 0;
  fc.assert(
    fc.property(shuffled, ({ history, arrivals, initial }) => {
      const inOrder = judgeArrivals(history, initial);
      const late = judgeArrivals(arrivals, initial);
      if (inOrder.contentFindings.length > 0) withFindings += 1;
      return (
        JSON.stringify(late.deviceBelief) === JSON.stringify(inOrder.deviceBelief) &&
        JSON.stringify(late.contentFindings) === JSON.stringify(inOrder.contentFindings)
      );
    }),
    { numRuns: 3000, seed: 20261120 },
  );
  // Otherwise the test would compare mostly empty lists.
  t.ok(withFindings > 1000, 'over 1000 of the 3000 histories have findings');
});
