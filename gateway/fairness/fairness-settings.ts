/**
 * The settings that limit what one merchant, or one unauthenticated address ("stranger"), may do and store
 * (docs/http.md, "How much").
 */
import type { Quota } from '../store/contract/merchants/quota.js';

/** A budget that refills: its rate per second, and how much may be used at once when it is full. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** All limits; Infinity means no limit. */
export interface Fairness {
  /** Requests of a merchant. */
  readonly requests: Rate;
  /** Bytes of request bodies of a merchant. */
  readonly bytes: Rate;
  /** Passwords of a merchant that are hashed or compared. */
  readonly passwordHashes: Rate;
  /** Requests of an address without a merchant's key or token. */
  readonly strangers: Rate;
  readonly quota: Quota;
  /** Maximum length of names and other short texts, in characters. */
  readonly nameLength: number;
}

interface FairnessSetting {
  readonly key: string;
  readonly flag: string;
  readonly environment: string;
  readonly default: string;
  readonly unit: string;
  readonly meaning: string;
}

/**
 * These settings, for the table of all settings in settings.ts, which describes the members. The pets are records of
 * the pet registry, an operation of the merchants' interface that has nothing to do with locks.
 */
export const FAIRNESS_SETTINGS = [
  {
    key: 'merchantRequests',
    flag: '--merchant-requests',
    environment: 'LOCKGATE_MERCHANT_REQUESTS',
    default: '50',
    unit: 'requests a second',
    meaning: 'How many HTTP requests a merchant may make, on average; 0 for any number.',
  },
  {
    key: 'merchantRequestsBurst',
    flag: '--merchant-requests-burst',
    environment: 'LOCKGATE_MERCHANT_REQUESTS_BURST',
    default: '200',
    unit: 'requests',
    meaning: 'The largest burst.',
  },
  {
    key: 'merchantBytes',
    flag: '--merchant-bytes',
    environment: 'LOCKGATE_MERCHANT_BYTES',
    default: '1048576',
    unit: 'bytes a second',
    meaning: 'How much a merchant may send in bodies, on average; 0 for any amount.',
  },
  {
    key: 'merchantBytesBurst',
    flag: '--merchant-bytes-burst',
    environment: 'LOCKGATE_MERCHANT_BYTES_BURST',
    default: '8388608',
    unit: 'bytes',
    meaning: 'The largest burst.',
  },
  {
    key: 'merchantHashes',
    flag: '--merchant-hashes',
    environment: 'LOCKGATE_MERCHANT_HASHES',
    default: '20',
    unit: 'passwords a minute',
    meaning: 'How many passwords a merchant may have hashed or compared, on average; 0 for any number.',
  },
  {
    key: 'merchantHashesBurst',
    flag: '--merchant-hashes-burst',
    environment: 'LOCKGATE_MERCHANT_HASHES_BURST',
    default: '1000',
    unit: 'passwords',
    meaning: 'The largest burst.',
  },
  {
    key: 'merchantPets',
    flag: '--merchant-pets',
    environment: 'LOCKGATE_MERCHANT_PETS',
    default: '100000',
    unit: 'pets',
    meaning: 'How many pets a merchant may store (POST /v1/pet); 0 for any number.',
  },
  {
    key: 'merchantPetBytes',
    flag: '--merchant-pet-bytes',
    environment: 'LOCKGATE_MERCHANT_PET_BYTES',
    default: '16384',
    unit: 'bytes',
    meaning: 'The largest pet, and the largest body with one; at most 1 MiB.',
  },
  {
    key: 'merchantUsers',
    flag: '--merchant-users',
    environment: 'LOCKGATE_MERCHANT_USERS',
    default: '1000000',
    unit: 'users',
    meaning: 'How many users a merchant may store; 0 for any number.',
  },
  {
    key: 'merchantKeptBytes',
    flag: '--merchant-kept-bytes',
    environment: 'LOCKGATE_MERCHANT_KEPT_BYTES',
    default: '1073741824',
    unit: 'bytes',
    meaning: 'How much a merchant may store in pets, users, sessions and tokens together; 0 for any amount.',
  },
  {
    key: 'nameLength',
    flag: '--name-length',
    environment: 'LOCKGATE_NAME_LENGTH',
    default: '256',
    unit: 'characters',
    meaning: 'How long names and other short texts of pets and users may be; 0 for any length.',
  },
  {
    key: 'strangerRequests',
    flag: '--stranger-requests',
    environment: 'LOCKGATE_STRANGER_REQUESTS',
    default: '100',
    unit: 'requests a second',
    meaning: 'HTTP requests that one address may make without a valid key or token, on average; 0 for any number.',
  },
  {
    key: 'strangerRequestsBurst',
    flag: '--stranger-requests-burst',
    environment: 'LOCKGATE_STRANGER_REQUESTS_BURST',
    default: '1000',
    unit: 'requests',
    meaning: 'The largest burst.',
  },
] as const satisfies readonly FairnessSetting[];

export type FairnessKey = (typeof FAIRNESS_SETTINGS)[number]['key'];

const SECONDS_PER_MINUTE = 60;

/** Reads the limits. @param numberOf reads one setting: a whole number, 0 or more */
export function readFairness(numberOf: (key: FairnessKey) => number): Fairness {
  /** 0 means no limit. */
  const limit = (key: FairnessKey): number => numberOf(key) || Number.POSITIVE_INFINITY;
  const rate = (key: FairnessKey, burstKey: FairnessKey, seconds = 1): Rate => {
    const perSecond = limit(key) / seconds;
    return { perSecond, burst: perSecond === Number.POSITIVE_INFINITY ? perSecond : limit(burstKey) };
  };
  return {
    requests: rate('merchantRequests', 'merchantRequestsBurst'),
    bytes: rate('merchantBytes', 'merchantBytesBurst'),
    passwordHashes: rate('merchantHashes', 'merchantHashesBurst', SECONDS_PER_MINUTE),
    strangers: rate('strangerRequests', 'strangerRequestsBurst'),
    quota: {
      pets: limit('merchantPets'),
      petBytes: numberOf('merchantPetBytes'),
      users: limit('merchantUsers'),
      bytes: limit('merchantKeptBytes'),
    },
    nameLength: limit('nameLength'),
  };
}

/** The limits with default settings. */
export const DEFAULT_FAIRNESS: Fairness = readFairness((key) =>
  Number(FAIRNESS_SETTINGS.find((setting) => setting.key === key)?.default),
);
