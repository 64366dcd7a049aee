// Checks which texts `parseDate` accepts, as dates of traces and of HTTP calls, and which it rejects.
import fc from 'fast-check';
import t from 'tap';
import { parseDate } from '../../proto/date.js';
import { quickOrLong } from '../helpers/house/test-length.js';

t.test('RFC 3339 dates are parsed, and other texts are rejected', async (t) => {
  // From the start of the year 0 to the end of the year 9999.
  fc.assert(
    fc.property(fc.integer({ min: -62167219200000, max: 253402300799999 }), (timeMs) => {
      const text = new Date(timeMs).toISOString();
      t.equal(parseDate(text), timeMs, text);
    }),
    { numRuns: quickOrLong(1000, 3000), seed: 9 },
  );
  // `Date.parse` gets upper case and at most three decimals.
  for (const text of [
    '2026-11-20T06:00:00Z',
    '2026-11-20t06:00:00.5z',
    '2026-11-20T06:00:00.123456789+05:30',
    '2024-02-29T23:59:59-00:30',
  ])
    t.equal(parseDate(text), Math.floor(Date.parse(text.toUpperCase().replace(/(\.\d{3})\d+/, '$1'))), text);
  for (const text of [
    '2026-11-20',
    '2026-13-20T06:00:00.000Z',
    '2026-02-29T06:00:00.000Z',
    '2026-11-20T24:00:00.000Z',
    '2026-11-20T06:60:00.000Z',
    '2026-11-20T06:00:0x.000Z',
    '2026-11-20T06:00:00.00/Z',
    '2026-11-20 06:00:00.000Z',
    '2026-11-20T06:00:00.000',
    '2026-11-20T06:00:00+24:00',
    '',
  ])
    t.ok(Number.isNaN(parseDate(text)), text);
});
