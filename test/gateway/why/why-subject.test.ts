/**
 * Which names of things `lockgate why` accepts (an event's id, a MAC, `finding:12` and so on), and which times
 * (interfaces.md §4). A finding is the gateway's objection to a lock; quarantine has the bytes that it could not
 * decode. NOW is 2026-11-22T12:00:00Z.
 */
import t from 'tap';
import { parseSubject } from '../../../gateway/why/why-subject.js';
import { readMoment } from '../../../gateway/why/why-time.js';
import { Hours } from '../../../proto/clock.js';
import { NOW } from '../../helpers/why/lock-history.js';

t.test('why accepts the names that users copy, and rejects anything else with an error', async (t) => {
  const id = 'evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6';
  const mac = 'A4C138F0E1D2';
  t.match(parseSubject(id), { kind: 'event', id, key: { mac, boot: 41, sequence: 12 } });
  for (const text of [`${id}/3`, `${id}@3`, `delivery:${id}/3`])
    t.match(parseSubject(text), { kind: 'event', urlId: 3 });
  t.match(parseSubject('evt_test_123abc'), { kind: 'test-webhook' });
  t.same(parseSubject('finding:12'), { kind: 'finding', id: 12 });
  t.same(parseSubject('command 7'), { kind: 'command', id: 7 });
  t.same(parseSubject('quarantine:3'), { kind: 'quarantine', id: 3 });
  for (const text of ['A4:C1:38:F0:E1:D2', 'a4-c1-38-f0-e1-d2', 'a4c1.38f0.e1d2', mac])
    t.same(parseSubject(text), { kind: 'lock', mac });
  for (const text of ['A4:C1:38:F0:E1:D2 41/12', 'A4C138F0E1D2 #41/12', 'A4C138F0E1D2#41/12'])
    t.same(parseSubject(text), { kind: 'uplink', mac, boot: 41, sequence: 12 });
  const refused: readonly (readonly [string, RegExp])[] = [
    ['7', /^7 is ambiguous: use finding:7, command:7 or quarantine:7$/],
    ['41/12', /names an uplink but no lock: put the MAC before it, such as A4:C1:38:F0:E1:D2 41\/12$/],
    ['evt_nonsense', /can't be explained: expected evt_… \(an event\)/],
    ['', /can't be explained/],
    ['x'.repeat(5000), /can't be explained/],
  ];
  for (const [text, message] of refused) t.throws(() => parseSubject(text), { code: 'input-why', message });
  const spellingsOfTwoHoursAgo = [
    '2026-11-22T10:00:00.000Z',
    '2026-11-22T10:00Z',
    '10:00',
    '10:00:00',
    '2h',
    '2h ago',
    '120 min ago',
  ];
  for (const text of spellingsOfTwoHoursAgo) t.equal(readMoment(text, NOW), NOW - Hours(2), text);
  t.equal(readMoment('13:00', NOW), NOW - Hours(23), 'a time of day later than now means yesterday');
  t.equal(readMoment('2026-11-22', NOW), NOW - Hours(12), 'a date means its midnight');
  t.throws(() => readMoment('soon', NOW), { code: 'input-at', message: /expected a date such as/ });
  t.throws(() => readMoment('2026-11-23', NOW), { code: 'input-at', message: /is in the future/ });
});
