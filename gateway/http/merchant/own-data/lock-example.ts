/** Examples of locks in the documentation of the merchants' interface. */

const POWER = {
  mode: 'MID',
  ride_tracking: true,
  airplane: false,
  recovery: false,
  high_window: { from: '00:00', to: '00:00', utc_offset_minutes: 0 },
};

export const LOCK_EXAMPLE = {
  mac_addr: 'A4:C1:38:F0:E1:D2',
  name: 'Harbour 7',
  labels: { city: 'Hamburg' },
  simulated: false,
  trouble: 'none',
  presence: 'asleep',
  since: '2026-11-20T06:00:41.120Z',
  due: '2026-11-21T06:00:00.000Z',
  power_state: 'MID',
  lock_state: 'locked',
  battery_percent: 81,
  firmware_version: '2.4.1',
  position: { latitude: 53.5436, longitude: 9.9881, uncertainty: 6, date: '2026-11-20T06:00:12.000Z' },
  last_reason: 'REASON_CLOSE_CONNECTION',
  received_at: '2026-11-20T06:00:41.080Z',
  sim: { state: 'active', activated_at: '2026-03-02T09:12:44.000Z' },
};

export const LOCK_DETAIL_EXAMPLE = {
  ...LOCK_EXAMPLE,
  believed: {
    power_state: 'MID',
    power_state_since: '2026-03-02T09:12:44.000Z',
    is_doubtful: false,
    connected: false,
    connected_since: null,
    offline_since: '2026-11-20T06:00:41.120Z',
    last_period_ping_at: '2026-11-20T06:00:12.410Z',
    messages: 2041,
    power: POWER,
  },
  twin: { wanted: { ride_tracking: true }, reported: POWER, differs: [] },
};

/** A ping as webhooks have it. */
export const PING_EXAMPLE = {
  event_id: 'evt_A4C138F0E1D2_1_41_12_8f3a52c07d91be64',
  mac_addr: 'A4:C1:38:F0:E1:D2',
  ping_type: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  date: '2026-11-20T06:29:59.000Z',
  lock_state: 'locked',
  battery_percent: 80,
  received_at: '2026-11-20T06:30:00.000Z',
  boot: 41,
  sequence: 12,
  buffered: false,
  test: false,
  simulated: false,
};
