// Readers of recordings never throw, whatever bytes they get, and each event that they read is a valid line of a trace
// (cli/recordings/README.md). The bytes are samples with random changes, and random bytes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { storedEvent } from '../../../cli/commands/trace/import/trace-completer.js';
import { AtRecording } from '../../../cli/recordings/at-log/at-recording.js';
import { readColumnMap } from '../../../cli/recordings/csv/column-map.js';
import { CsvRecording } from '../../../cli/recordings/csv/csv-recording.js';
import { TRACCAR_MAP } from '../../../cli/recordings/csv/traccar-map.js';
import { MosquittoRecording } from '../../../cli/recordings/mosquitto/mosquitto-recording.js';
import { PcapRecording } from '../../../cli/recordings/pcap/pcap-recording.js';
import type { RecordingReader } from '../../../cli/recordings/recording.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { root } from '../../helpers/house/our-files.js';
import { convertCapture } from '../../helpers/recordings/capture.js';
import { readRecording } from '../../helpers/recordings/read-recording.js';

const RUNS = 40;
const HEADER = '{"trace":"lockgate","version":1,"locks":{}}';
/** The lock of recordings that do not name one. The brand `Mac` is only in the types, so any text in form will do. */
const mac = 'A4C138F0E1D2' as Mac;
const options = { mac, utcOffsetMs: 0 };
const sample = (name: string): Buffer => readFileSync(join(root, 'test/recordings', name));
const POSITIONS = readColumnMap(sample('positions.yaml').toString(), null);
if (!('row' in POSITIONS)) throw new Error('the sample’s map has mistakes');
const positions = POSITIONS;

/** A name, a new reader and a sample. A packet recording with `[]` for its ports has the default MQTT port. */
const FORMATS: readonly (readonly [string, () => RecordingReader, Buffer])[] = [
  ['pcap', () => new PcapRecording([], mac), sample('bench-loopback.pcap')],
  ['pcap, cooked', () => new PcapRecording([], null), sample('bench-any.pcap')],
  ['pcapng', () => new PcapRecording([], mac), convertCapture(sample('bench-loopback.pcap'), 'pcapng')],
  ['mosquitto_sub', () => new MosquittoRecording(options), sample('mosquitto-sub.txt')],
  ['Mosquitto’s log', () => new MosquittoRecording({ mac: null, utcOffsetMs: 0 }), sample('mosquitto-broker.txt')],
  ['at-log', () => new AtRecording(options), sample('modem-at.txt')],
  ['traccar-csv', () => new CsvRecording(TRACCAR_MAP, options), sample('traccar.csv')],
  ['csv', () => new CsvRecording(positions, options), sample('positions.csv')],
];

/** The bytes with some parts replaced or removed, and possibly cut off at the end. */
function mutationsOf(bytes: Buffer): fc.Arbitrary<Buffer> {
  const offset = fc.nat(bytes.length - 1);
  const change = fc.record({ offset, length: fc.nat(40), replacement: fc.uint8Array({ maxLength: 12 }) });
  return fc
    .tuple(fc.array(change, { minLength: 1, maxLength: 8 }), fc.option(offset, { freq: 3 }))
    .map(([changes, end]) => {
      let result = bytes;
      for (const { offset: start, length, replacement } of changes) {
        // Mostly as many bytes are replaced as inserted, so that the structure of the file stays intact.
        const removed = length > 30 ? length : replacement.length;
        result = Buffer.concat([result.subarray(0, start), replacement, result.subarray(start + removed)]);
      }
      return result.subarray(0, end ?? result.length);
    });
}

for (const [name, readerOf, bytes] of FORMATS) {
  t.test(`${name}: any bytes give valid events, counted rows or an error`, async (t) => {
    const anyBytes = fc.oneof({ weight: 4, arbitrary: mutationsOf(bytes) }, fc.uint8Array({ maxLength: 400 }));
    let count = 0;
    await fc.assert(
      fc.asyncProperty(anyBytes, fc.integer({ min: 1, max: 5000 }), async (input, chunkBytes) => {
        const { events } = await readRecording(readerOf(), [input], chunkBytes);
        for (const recorded of events) {
          count += 1;
          const reader = new TraceReader();
          reader.read(HEADER);
          const read = reader.read(storedEvent(recorded).line);
          if (!read.ok) throw new Error(read.error.message);
        }
      }),
      { numRuns: RUNS, seed: 1 },
    );
    t.ok(count > RUNS, 'there were events');
  });
}

t.test('reading a column map never throws', async () => {
  const text = sample('positions.yaml');
  fc.assert(
    fc.property(mutationsOf(text), (input) => {
      readColumnMap(input.toString('latin1'), null);
    }),
    { numRuns: RUNS, seed: 1 },
  );
});
