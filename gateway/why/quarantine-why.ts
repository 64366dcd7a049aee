/** Why bytes were put into quarantine: a row for each reason that codec.ts has (protocol.md §1). Pure. */

import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import type { UplinkRejection } from '../../proto/wire/codec.js';
import { toDate } from '../../proto/wire/ping-json.js';
import { QUARANTINE_PER_LOCK, type QuarantinedMessage } from '../store/contract/store.js';

/** What each code says of the bytes. */
export const REJECTION_WHY: Readonly<Record<UplinkRejection['code'], string>> = Object.freeze({
  'too-long': 'an uplink has at most 1,024 bytes',
  undecodable: 'an uplink is one protobuf message, and these bytes are none',
  'no-boot': 'an uplink’s name is its boot and its sequence, and the boot is missing',
  'no-sequence': 'an uplink’s name is its boot and its sequence, and the sequence is missing',
  'no-time': 'an uplink says when it was made, and the time is missing',
  'no-body': 'an uplink carries a ping or an acknowledgement, and this one neither',
});

/** The steps of a quarantined message. */
export function quarantineSteps({ receivedAtMs, code, message, bytes }: QuarantinedMessage): WhyStep[] {
  const ground = REJECTION_WHY[code as UplinkRejection['code']] ?? 'what it was by an earlier version of the gateway';
  const came = `${bytes.length} bytes came at ${toDate(receivedAtMs)} and could not be taken: ${message}.`;
  const kept =
    'They were put into quarantine and acknowledged all the same: a lock can’t mend its firmware, and would send ' +
    `them for ever. ${QUARANTINE_PER_LOCK.toLocaleString('en')} such messages of a lock are kept.`;
  return [
    step('quarantine', code, SECTIONS.wire, `${came} The ground: ${ground}.`, receivedAtMs),
    step('quarantine', 'kept', SECTIONS.wire, kept, receivedAtMs),
    step('delivery', 'no-event', SECTIONS.wire, 'It is no ping, so it is neither judged nor sent to any webhook.'),
  ];
}
