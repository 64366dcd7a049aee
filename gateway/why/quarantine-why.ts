/**
 * Explains why a message of a lock was quarantined, that is, stored apart since it could not be decoded as an uplink: a
 * sentence for each rejection code of codec.ts (protocol.md §1). Pure.
 */

import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import type { UplinkRejection } from '../../proto/wire/codec.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import { MAX_QUARANTINED_PER_LOCK } from '../store/contract/log/commit.js';
import type { QuarantinedMessage } from '../store/contract/log/log-entry.js';

/** What each rejection code means. */
export const REJECTION_WHY: Readonly<Record<UplinkRejection['code'], string>> = Object.freeze({
  'too-long': 'an uplink has at most 1,024 bytes',
  undecodable: 'an uplink is one protobuf message, and these bytes are not',
  'no-boot': 'an uplink’s key is its boot and its sequence, and the boot is missing',
  'no-sequence': 'an uplink’s key is its boot and its sequence, and the sequence is missing',
  'no-time': 'an uplink has the time when it was made, and the time is missing',
  'no-body': 'an uplink carries a ping or an acknowledgement, and this one has neither',
});

/** The steps of a quarantined message. */
export function quarantineSteps({ receivedAtMs, code, message, bytes }: QuarantinedMessage): WhyStep[] {
  const reason = REJECTION_WHY[code as UplinkRejection['code']] ?? 'an earlier version of the gateway rejected it';
  const date = formatDate(receivedAtMs);
  const receivedText = `${bytes.length} bytes came at ${date} and could not be accepted: ${message}.`;
  const storedText =
    'They were quarantined, but acknowledged: a lock can’t repair its firmware, and would send ' +
    `them for ever. The gateway stores ${MAX_QUARANTINED_PER_LOCK.toLocaleString('en')} such messages of a lock.`;
  return [
    step('quarantine', code, SECTIONS.wire, `${receivedText} The reason: ${reason}.`, receivedAtMs),
    step('quarantine', 'kept', SECTIONS.wire, storedText, receivedAtMs),
    step('delivery', 'no-event', SECTIONS.wire, 'It is no ping, so it is neither judged nor sent to any webhook.'),
  ];
}
