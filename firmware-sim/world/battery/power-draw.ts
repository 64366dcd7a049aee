/**
 * The consumption of each activity of a lock, with the source of each figure. The figures are typical values from
 * public data sheets, for a lock with an LTE-M modem, a GNSS receiver, a small gear motor and one lithium cell. To
 * simulate another lock, change the figures here.
 */

/** One figure of the battery model. */
export interface PowerFigure {
  readonly value: number;
  readonly unit: 'mAh' | 'mA' | '% a month';
  /** What the figure measures. */
  readonly sentence: string;
  readonly source: string;
}

const SIM7000 = 'SIMCom SIM7000 Hardware Design, current consumption';

/** The figures by activity; also the capacity of the battery and the current of a charger. */
export const POWER_DRAW = Object.freeze({
  capacity: {
    value: 2950,
    unit: 'mAh',
    sentence: 'The capacity of one full cell.',
    source: 'Samsung SDI, Specification of INR18650-30Q, v1.0, 3.1: minimum discharge capacity',
  },
  idle: {
    value: 0.05,
    unit: 'mA',
    sentence:
      'Always: modem in its power saving mode, a Bluetooth beacon each second, an accelerometer, the regulators.',
    source: `${SIM7000}: 9 µA in PSM; ST LIS2DH12 data sheet: some 2 µA; the rest is an estimate`,
  },
  selfDischarge: {
    value: 2,
    unit: '% a month',
    sentence: 'The share of its capacity that the cell loses by itself.',
    source: 'Battery University BU-802b: 1 to 2 % a month for lithium ion',
  },
  modem: {
    value: 11,
    unit: 'mA',
    sentence: 'From the start of connecting to the end of the connection: registered and awake, to receive commands.',
    source: `${SIM7000}: 11 mA idling on LTE`,
  },
  connect: {
    value: 0.3,
    unit: 'mAh',
    sentence: 'Each attempt to connect: about 10 s of radio for registration, TCP, TLS and MQTT.',
    source: `${SIM7000}: 109 mA for LTE data at 10 dBm; the seconds are an estimate`,
  },
  send: {
    value: 0.09,
    unit: 'mAh',
    sentence: 'Each time an uplink is sent: about 3 s until the radio sleeps again.',
    source: `${SIM7000}: 109 mA for LTE data at 10 dBm; the seconds are an estimate`,
  },
  gps: {
    value: 30,
    unit: 'mA',
    sentence: 'While GPS is on, searching or not.',
    source: `${SIM7000}: 30 mA with GNSS active; u-blox SAM-M8Q data sheet, table 8: 32 mA and 29 mA`,
  },
  motor: {
    value: 0.15,
    unit: 'mAh',
    sentence: 'Each time the shackle opens or closes: 1.5 s at 0.36 A.',
    source:
      'Pololu micro metal gearmotor (MP, 6 V): stalls at 0.67 A, taken at about half; the seconds are an estimate',
  },
  tone: {
    value: 60,
    unit: 'mA',
    sentence: 'While the tone warns before the lock closes.',
    source: 'an estimate for a piezo buzzer of some 85 dB',
  },
  siren: {
    value: 500,
    unit: 'mA',
    sentence: 'While the siren sounds: 12 V and 0.15 A, made from the cell’s 3.6 V.',
    source: 'an estimate for a piezo siren of some 110 dB',
  },
  charger: {
    value: 1000,
    unit: 'mA',
    sentence: 'The current of a charger, until the battery is full.',
    source: 'USB at 1 A; the cell takes 1.5 A (Samsung SDI, Specification of INR18650-30Q, v1.0, 3.3)',
  },
} as const satisfies Record<string, PowerFigure>);
