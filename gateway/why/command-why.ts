/**
 * Explains why a command was sent, waits or is finished: a sentence for each type, each state and each wait of a
 * command (protocol.md §1 and §2). Pure.
 */
import { describeSpan } from '../../proto/power/judge/words.js';
import { SECTIONS, type Section, step, type WhyStep } from '../../proto/why/step.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { Command } from '../../proto/wire/ping.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { Wait } from '../commands/command-wait.js';
import type { CommandRecord, CommandState } from '../store/contract/command-record.js';

/** What each type of command asks of the lock; follows "Command 7 asks lock …". */
export const TYPE_WHY: Readonly<Record<Command['type'], string>> = Object.freeze({
  unlock: 'to unlock',
  lock: 'to lock, after a warning tone of 5 s',
  siren: 'to sound its siren',
  'locate-gps': 'where it is, by GPS: one GPS ping REASON_GPS_PING, or a failure where there is no fix within 120 s',
  'locate-cell': 'where it is, by the network’s cells: one cellular ping REASON_CELL_PING',
  'set-power': 'to change its power settings',
  reset: 'to restart its modem: a close-connection ping, then REASON_RESET on the next connection',
});

/** The sentence for each state of a command. */
export const STATE_WHY: Readonly<Record<CommandState, (command: CommandRecord) => string>> = Object.freeze({
  queued: () => 'It is queued: it has not left for the lock yet.',
  sent: () =>
    'It was sent and is not answered: it is sent again under the same id, and the lock executes each id once.',
  done: () => 'It is done: the lock acknowledged it with ok.',
  rejected: ({ detail }) => `It is rejected: the lock refused it${reasonText(detail)}.`,
  failed: ({ detail }) => `It failed: the lock tried and could not${reasonText(detail)}.`,
  expired: ({ sentCount }) =>
    sentCount === 0
      ? 'It expired before the lock could be reached: it was never sent.'
      : 'It expired without an answer: the lock won’t execute it any more, but may still report that it did so.',
  cancelled: ({ sentCount }) =>
    sentCount === 0
      ? 'It was cancelled before it was sent: by an operator, or because the lock was removed or moved.'
      : 'It was cancelled before the lock answered: the lock was removed, or moved to another merchant.',
});

/** The end of a sentence with the reason that the lock gave; empty if it gave none. */
function reasonText(detail: string): string {
  return detail === '' ? '' : `, and gave the reason: ${detail}`;
}

interface WaitRow {
  readonly sentence: string;
  /** The section of the specification that demands the wait. */
  readonly restsOn: Section;
}

/** Why an unfinished command must wait, for each thing that it may wait for. */
export const WAIT_WHY: Readonly<Record<Wait['for'], WaitRow>> = Object.freeze({
  schedule: { sentence: 'it was scheduled for later on purpose', restsOn: SECTIONS.wire },
  clock: {
    sentence: 'it is neither sent nor expired until the clock is confirmed, since a lock must not obey an old command',
    restsOn: SECTIONS.wire,
  },
  turn: {
    sentence: 'a lock gets its commands one at a time, in the order of their requests',
    restsOn: SECTIONS.operator,
  },
  'low-battery': { sentence: 'no command is sent while the battery is below 10 %', restsOn: SECTIONS.wire },
  airplane: { sentence: 'in airplane mode nothing reaches the lock', restsOn: SECTIONS.model },
  connection: { sentence: 'a lock receives commands only while it is connected', restsOn: SECTIONS.wire },
  subscription: {
    sentence: 'a lock gets commands once it has subscribed to `down` on its current connection',
    restsOn: SECTIONS.wire,
  },
  acknowledgement: {
    sentence: 'the gateway holds a command until the lock has acknowledged it',
    restsOn: SECTIONS.wire,
  },
  sending: { sentence: 'it is on its way', restsOn: SECTIONS.wire },
});

/**
 * The steps that explain a command; times are by the run's clock (wall-clock time, except in a sped-up simulation).
 * `wait` is null where the command is finished.
 */
export function commandSteps(record: CommandRecord, wait: Wait | null): WhyStep[] {
  const { id, mac, command, createdAtMs, notBeforeMs, expiresAtMs, askedBy } = record;
  const commandText = `Command ${id} asks lock ${formatMac(mac)} ${TYPE_WHY[command.type]}.`;
  const requestText = `Requested at ${formatDate(createdAtMs)} by ${askedBy}.`;
  const lifetimeText = describeSpan(expiresAtMs - (notBeforeMs ?? createdAtMs));
  const scheduleText = notBeforeMs === null ? '' : `It was not to be sent before ${formatDate(notBeforeMs)}. `;
  const expiryText = `It expires at ${formatDate(expiresAtMs)}, ${lifetimeText} after it may first be sent.`;
  return [
    step('command', command.type, SECTIONS.wire, `${commandText} ${requestText}`, createdAtMs),
    step('command', 'expiry', SECTIONS.wire, `${scheduleText}${expiryText} ${EXPIRY_RULE}`, expiresAtMs),
    ...sentSteps(record),
    step('command', record.state, SECTIONS.wire, STATE_WHY[record.state](record), record.finishedAtMs),
    ...(wait === null ? [] : [waitStep(wait)]),
  ];
}

const EXPIRY_RULE =
  'Unlock, lock and siren expire after 2 min, other commands after 24 h, unless the request says otherwise: a lock ' +
  'that wakes at dawn must not spring open for last night’s tap.';

function sentSteps({ firstSentAtMs, lastSentAtMs, sentCount }: CommandRecord): WhyStep[] {
  if (firstSentAtMs === null) return [];
  const repeatText = sentCount > 1 ? `, ${sentCount} times, last at ${formatDate(lastSentAtMs ?? firstSentAtMs)}` : '';
  return [
    step('command', 'sent-at', SECTIONS.wire, `Sent at ${formatDate(firstSentAtMs)}${repeatText}.`, firstSentAtMs),
  ];
}

function waitStep({ for: awaited, text, dueMs }: Wait): WhyStep {
  const { restsOn, sentence } = WAIT_WHY[awaited];
  return step('command', `waits-${awaited}`, restsOn, `It waits: ${text}; ${sentence}.`, dueMs ?? null);
}
