// Where `lockgate trace anonymise` moves positions to when it shifts them over a pole.
import t from 'tap';
import { TraceAnonymiser } from '../../../cli/commands/trace/anonymiser.js';
import { metersBetween } from '../../../proto/power/judge/in-order/geodesy.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, type Position } from '../../../proto/wire/ping.js';

/** The anonymised position of a ping at this place. */
function anonymise(anonymiser: TraceAnonymiser, latitudeDegrees: number, longitudeDegrees: number): Position {
  const common = { lockState: 'unlocked', batteryPercent: 80, ebikeVolts: null } as const;
  const position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters: 8 };
  const rest = { firmwareVersion: '2.4.1', tetherState: 'detached', position } as const;
  const body = { kind: 'cellular', reason: 'REASON_CELL_PING', ...common, ...rest } as const;
  const uplink = { boot: 1, sequence: 1, timeMs: 0, power: DEFAULT_POWER, kept: 0, dropped: 0, body };
  const event = { event: 'ping', atMs: 0, mac: 'A4C138F0E1D2' as Mac, source: 'lock', uplink } as unknown as TraceEvent;
  const copy = anonymiser.event(event);
  if (copy.event !== 'ping' || copy.uplink.body.kind !== 'cellular') throw new Error('the copy is no cellular ping');
  if (copy.uplink.body.position === null) throw new Error('the copy has no position');
  return copy.uplink.body.position;
}

t.test('a way over a pole keeps its length', async (t) => {
  let crossings = 0;
  for (let seed = 0; seed < 100; seed += 1) {
    const anonymiser = new TraceAnonymiser(String(seed));
    for (const side of [1, -1])
      for (const longitude of [-180, -5, 0, 100, 180]) {
        const [from, to] = [70, 89.9].map((latitude) => anonymise(anonymiser, side * latitude, longitude));
        if (from === undefined || to === undefined) throw new Error('no positions');
        for (const { latitudeDegrees, longitudeDegrees } of [from, to])
          t.ok(Math.abs(latitudeDegrees) <= 90 && Math.abs(longitudeDegrees) <= 180, 'a place on Earth');
        const meters = metersBetween(from, to);
        // 19.9° of a great circle of 40,030 km.
        t.ok(Math.abs(meters - 2_212_781) < 100, `seed ${seed}, ${side * 70}° ${longitude}°: ${meters} m`);
        if (Math.abs(Math.abs(from.longitudeDegrees - to.longitudeDegrees) - 180) < 1e-6) crossings += 1;
      }
  }
  t.ok(crossings > 0, 'some shifts lead over a pole');
});
