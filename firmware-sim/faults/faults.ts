/**
 * The table of network faults that can be switched on between a simulated lock and the gateway. Faults delay uplinks,
 * but the lock sends again what it gets no acknowledgement for, so no uplink is lost for good (protocol.md §2, §3).
 * fault-link.ts applies the faults to one lock's connection; fault-network.ts is the network that all locks share.
 */
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import { didYouMean } from '../../proto/did-you-mean.js';
import { LockgateError } from '../../proto/errors.js';

/** The names of the faults; the table below says what each does. */
export type FaultName =
  | 'lost-connect'
  | 'lost-puback'
  | 'delay'
  | 'duplicate'
  | 'reorder'
  | 'cut'
  | 'gap'
  | 'nat-timeout'
  | 'storm';

/** A row of the table. */
export interface Fault {
  readonly name: FaultName;
  readonly sentence: string;
}

/** Probabilities per occasion (0…1), and durations as [shortest, longest] in ms. */
export const FAULT_PARAMETERS = Object.freeze({
  lostConnect: 0.1,
  connectTimesOutAfter: [Seconds(2), Seconds(10)] as const,
  lostPuback: 0.01,
  delay: 0.25,
  delayLasts: [Seconds(0.2), Seconds(8)] as const,
  duplicate: 0.05,
  reorder: 0.02,
  cut: 0.02,
  /** Maximum number of bytes of a packet that are sent before a cut; a short uplink has about 50. */
  cutAfterBytes: 48,
  gapEvery: [Hours(2), Hours(14)] as const,
  gapLasts: [Minutes(1), Minutes(20)] as const,
  natTimeout: 0.05,
  natForgetsAfter: [Seconds(30), Seconds(280)] as const,
  stormEvery: [Hours(3), Hours(9)] as const,
});

const percent = (probability: number): string => `${probability * 100} %`;

/** The table. */
export const FAULTS: readonly Fault[] = Object.freeze([
  { name: 'lost-connect', sentence: `An attempt to connect fails: ${percent(FAULT_PARAMETERS.lostConnect)}.` },
  {
    name: 'lost-puback',
    sentence: `The uplink arrives, its PUBACK does not: ${percent(FAULT_PARAMETERS.lostPuback)}.`,
  },
  { name: 'delay', sentence: `An uplink or its PUBACK is delayed by up to 8 s: ${percent(FAULT_PARAMETERS.delay)}.` },
  { name: 'duplicate', sentence: `An uplink arrives twice: ${percent(FAULT_PARAMETERS.duplicate)}.` },
  {
    name: 'reorder',
    sentence: `The connection breaks; its uplink arrives late on the next one: ${percent(FAULT_PARAMETERS.reorder)}.`,
  },
  { name: 'cut', sentence: `The connection breaks in the middle of an uplink: ${percent(FAULT_PARAMETERS.cut)}.` },
  { name: 'gap', sentence: 'The network does not reach a lock for 1 to 20 min, every 2 to 14 h.' },
  {
    name: 'nat-timeout',
    sentence: `A silent connection dies; the gateway considers it open: ${percent(FAULT_PARAMETERS.natTimeout)}.`,
  },
  { name: 'storm', sentence: 'All connections break at once, and all locks reconnect at once, every 3 to 9 h.' },
]);

/** This name selects every fault of the table. */
const ALL_FAULTS = 'all';

/**
 * Reads the name of a fault, or `all`.
 *
 * @throws LockgateError `input-fault` for an unknown name
 */
export function parseFaults(name: string): readonly FaultName[] {
  if (name === ALL_FAULTS) return FAULTS.map((fault) => fault.name);
  const fault = FAULTS.find((row) => row.name === name);
  if (fault !== undefined) return [fault.name];
  const names = FAULTS.map((row) => row.name);
  const suggestion = didYouMean(name, names);
  throw new LockgateError(
    'input-fault',
    `there is no fault ${JSON.stringify(name)}: expected ${ALL_FAULTS} or one of ${names.join(', ')}.${suggestion}`,
  );
}
