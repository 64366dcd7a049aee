/** A gateway takes another for stopped after five seconds of the same beat, or after three if it is not connected. */
import t from 'tap';
import { StoppedGateways } from '../../../../gateway/store/postgres/owners/stopped-gateways.js';
import { Seconds } from '../../../../proto/clock.js';

const BEAT = Seconds(1);
const OTHER = { slot: 2, epoch: 7, at: 'first' };

/** A gateway that beats each second, from 0 s to `untilMs`, and sees the same beat of another each time. */
function beatUntil(untilMs: number, gateway = new StoppedGateways(0)): StoppedGateways {
  for (let nowMs = 0; nowMs <= untilMs; nowMs += BEAT) {
    gateway.beaten(nowMs);
    gateway.judge([OTHER], nowMs);
  }
  return gateway;
}

t.test('the same beat for three seconds, and for five', async (t) => {
  const gateway = new StoppedGateways(0);
  // Another beat each second.
  for (let nowMs = 0; nowMs <= Seconds(10); nowMs += BEAT) {
    gateway.beaten(nowMs);
    t.same(gateway.judge([{ ...OTHER, at: `at ${nowMs}` }], nowMs), { stopped: [], stoppedIfLost: [] });
  }
  const last = { ...OTHER, at: `at ${Seconds(10)}` };
  const judged = [11, 12, 13, 14, 15].map((second) => {
    gateway.beaten(Seconds(second));
    const { stopped, stoppedIfLost } = gateway.judge([last], Seconds(second));
    return [stopped.length, stoppedIfLost.length];
  });
  t.same(judged, [
    [0, 0],
    [0, 0],
    [0, 1],
    [0, 1],
    [1, 0],
  ]);
});

t.test('another epoch in the slot is another gateway', async (t) => {
  const gateway = beatUntil(Seconds(10));
  t.same(gateway.judge([{ ...OTHER, epoch: 8 }], Seconds(10)), { stopped: [], stoppedIfLost: [] });
});

t.test('a gateway whose own beats had a gap ends nobody for five seconds', async (t) => {
  const gateway = beatUntil(Seconds(10));
  gateway.beaten(Seconds(12.1));
  t.same(gateway.judge([OTHER], Seconds(12.1)), { stopped: [], stoppedIfLost: [] });
  for (let second = 13.1; second < 17; second += 1) gateway.beaten(Seconds(second));
  t.same(gateway.judge([OTHER], Seconds(17)), { stopped: [], stoppedIfLost: [] });
  t.same(gateway.judge([OTHER], Seconds(17.1)), { stopped: [OTHER], stoppedIfLost: [] });
});

t.test('a new connection says nothing about those of others, which may be lost with the server', async (t) => {
  const gateway = beatUntil(Seconds(4));
  gateway.reconnected(Seconds(4.5));
  const last = { ...OTHER, at: 'last' };
  for (const second of [5, 6]) {
    gateway.beaten(Seconds(second));
    gateway.judge([{ ...OTHER, at: second === 6 ? 'last' : 'last but one' }], Seconds(second));
  }
  for (const second of [7, 8, 9]) {
    gateway.beaten(Seconds(second));
    t.same(gateway.judge([last], Seconds(second)), { stopped: [], stoppedIfLost: [] });
  }
  gateway.beaten(Seconds(9.5));
  t.same(gateway.judge([last], Seconds(9.5)), { stopped: [], stoppedIfLost: [last] });
});
