/**
 * `lockgate why` explains something in steps: each has a kind, a code for programs and a sentence for people. This file
 * checks the sentences about commands and about quarantined bytes (bytes of a lock that could not be decoded), made
 * from records without a gateway (interfaces.md §4).
 */
import t from 'tap';
import type { CommandRecord, CommandState } from '../../../gateway/store/contract/command-record.js';
import { commandSteps } from '../../../gateway/why/command-why.js';
import { quarantineSteps, REJECTION_WHY } from '../../../gateway/why/quarantine-why.js';
import type { Command } from '../../../proto/wire/ping.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { at, sentenceOf } from '../../helpers/why/lock-history.js';

/** The store's record of a command: by default a queued `unlock` that Ada requested at 06:00 UTC. */
function commandRecord(change: Partial<CommandRecord> = {}): CommandRecord {
  return {
    ...{ id: 7, deviceId: 1, merchantId: 1, mac: testMac(1), command: { type: 'unlock' }, state: 'queued', detail: '' },
    ...{ createdAtMs: at('06:00:00'), notBeforeMs: null, expiresAtMs: at('06:02:00'), askedBy: 'Ada' },
    ...{ firstSentAtMs: null, lastSentAtMs: null, sentCount: 0, finishedAtMs: null },
    ...change,
  };
}

t.test('steps about a command say what it asks for, when it expires, its state and what it waits for', async (t) => {
  const requests: Readonly<Record<Command['type'], string>> = {
    unlock: 'to unlock.',
    lock: 'to lock, after a warning tone of 5 s.',
    siren: 'to sound its siren.',
    'locate-gps': 'where it is, by GPS: one GPS ping REASON_GPS_PING, or a failure where there is no fix within 120 s.',
    'locate-cell': 'where it is, by the network’s cells: one cellular ping REASON_CELL_PING.',
    'set-power': 'to change its power settings.',
    reset: 'to restart its modem: a close-connection ping, then REASON_RESET on the next connection.',
  };
  for (const [type, request] of Object.entries(requests)) {
    const steps = commandSteps(commandRecord({ command: { type } as Command }), null);
    t.equal(
      steps[0]?.sentence,
      `Command 7 asks lock A4:C1:38:00:00:01 ${request} Requested at 2026-11-20T06:00:00.000Z by Ada.`,
    );
  }
  const [, expiryStep] = commandSteps(commandRecord({ notBeforeMs: at('06:00:30') }), null);
  t.equal(
    expiryStep?.sentence,
    'It was not to be sent before 2026-11-20T06:00:30.000Z. It expires at 2026-11-20T06:02:00.000Z, 1 min 30 s after ' +
      'it may first be sent. Unlock, lock and siren expire after 2 min, other commands after 24 h, unless the ' +
      'request says otherwise: a lock that wakes at dawn must not spring open for last night’s tap.',
  );
  const states: Readonly<Record<CommandState, string>> = {
    queued: 'It is queued: it has not left for the lock yet.',
    sent: 'It was sent and is not answered: it is sent again under the same id, and the lock executes each id once.',
    done: 'It is done: the lock acknowledged it with ok.',
    rejected: 'It is rejected: the lock refused it, and gave the reason: too late.',
    failed: 'It failed: the lock tried and could not, and gave the reason: too late.',
    expired: 'It expired before the lock could be reached: it was never sent.',
    cancelled: 'It was cancelled before it was sent: by an operator, or because the lock was removed or moved.',
  };
  for (const [state, sentence] of Object.entries(states)) {
    const steps = commandSteps(commandRecord({ state: state as CommandState, detail: 'too late' }), null);
    t.equal(sentenceOf(steps, 'command', state), sentence);
  }
  const sentTwice = { firstSentAtMs: at('06:00:01'), lastSentAtMs: at('06:00:31'), sentCount: 2 };
  const expired = commandSteps(commandRecord({ ...sentTwice, state: 'expired', finishedAtMs: at('06:02:00') }), null);
  t.equal(
    sentenceOf(expired, 'command', 'sent-at'),
    'Sent at 2026-11-20T06:00:01.000Z, 2 times, last at 2026-11-20T06:00:31.000Z.',
  );
  t.equal(
    sentenceOf(expired, 'command', 'expired'),
    'It expired without an answer: the lock won’t execute it any more, but may still report that it did so.',
  );
  t.equal(
    sentenceOf(commandSteps(commandRecord({ ...sentTwice, state: 'cancelled' }), null), 'command', 'cancelled'),
    'It was cancelled before the lock answered: the lock was removed, or moved to another merchant.',
  );
  const explanations = {
    schedule: 'it was scheduled for later on purpose',
    turn: 'a lock gets its commands one at a time, in the order of their requests',
    'low-battery': 'no command is sent while the battery is below 10 %',
    airplane: 'in airplane mode nothing reaches the lock',
    connection: 'a lock receives commands only while it is connected',
    acknowledgement: 'the gateway holds a command until the lock has acknowledged it',
    sending: 'it is on its way',
  } as const;
  for (const [cause, sentence] of Object.entries(explanations) as [keyof typeof explanations, string][]) {
    const steps = commandSteps(commandRecord(), { for: cause, text: 'some text' });
    t.equal(sentenceOf(steps, 'command', `waits-${cause}`), `It waits: some text; ${sentence}.`);
  }
});

t.test(
  'steps about quarantined bytes say what is wrong with them, and that they were acknowledged, and why',
  async (t) => {
    const message = { id: 3, mac: testMac(1), receivedAtMs: at('06:00:00'), bytes: Buffer.from('hi') };
    const codes = ['too-long', 'undecodable', 'no-boot', 'no-sequence', 'no-time', 'no-body'] as const;
    t.same([...codes].sort(), Object.keys(REJECTION_WHY).sort(), 'the test has every code');
    for (const code of codes) {
      const [rejection, quarantine] = quarantineSteps({ ...message, code, message: 'no boot' });
      const received = '2 bytes came at 2026-11-20T06:00:00.000Z and could not be accepted: no boot.';
      t.equal(rejection?.sentence, `${received} The reason: ${REJECTION_WHY[code]}.`);
      t.match(
        quarantine?.sentence,
        'They were quarantined, but acknowledged: a lock can’t repair its firmware, and would send them for ever.',
      );
    }
  },
);
