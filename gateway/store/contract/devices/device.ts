/**
 * Records about locks, also called devices, and about the credentials of locks and of phones that act for them. The
 * methods that take and return them are in ../store.ts. Times are ms since the epoch, wall-clock time unless a comment
 * says otherwise; `nowMs` is the time of the call. The store gets only hashes of secrets.
 */
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import type { Labels } from './device-labels.js';

export interface Device {
  readonly id: number;
  readonly mac: Mac;
  readonly merchantId: number;
  readonly merchantName: string;
  /** Whether a simulator plays the lock; then it is not billed. */
  readonly simulated: boolean;
  readonly createdAtMs: number;
  /** Null for a lock without a name. */
  readonly name: string | null;
  readonly labels: Labels;
}

/** A page of locks, in the order of their MACs. */
export interface DevicePage {
  /** Only locks of this merchant; all locks if undefined. */
  readonly merchantId?: number | undefined;
  /** Only locks after this MAC. */
  readonly afterMac?: Mac | undefined;
  readonly limit: number;
}

/** A device with its state. */
export interface DeviceReading {
  readonly device: Device;
  /** JSON of the lock's state; null if it never sent an uplink. */
  readonly state: string | null;
}

/** A lock's stored state, as JSON. */
export interface StoredState {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly state: string;
  /** The row does not match its checksum: the disk changed it. */
  readonly isDamaged?: true;
}

export interface NewDevice {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant: string;
  readonly simulated: boolean;
  readonly secretHash: Buffer;
  readonly nowMs: number;
  readonly name?: string | null | undefined;
  readonly labels?: Labels | undefined;
}

/** An operator's changes to a lock; members that are left out do not change. */
export interface DeviceChange {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  /** Null removes the name. */
  readonly name?: string | null | undefined;
  /** Replaces all labels. */
  readonly labels?: Labels | undefined;
  /** JSON of the lock's new state (locks/device-state.ts); null removes the state. */
  readonly state?: string | null;
  /**
   * Given if `merchant` is: unfinished commands are cancelled as of this time, by the run's clock, which a sped-up
   * simulation runs faster than the wall clock.
   */
  readonly cancelledAtMs?: number | undefined;
}

/** A lock and its credentials. */
export interface LockAccount {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  /** Whether its merchant is closed: then it can't connect. */
  readonly isMerchantClosed: boolean;
  /** Unrevoked ones first, then newest first; at most {@link MAX_CREDENTIALS_READ}. */
  readonly credentials: readonly StoredCredential[];
}

/** A hashed secret of a lock or of a phone that acts for it. */
export interface StoredCredential {
  readonly id: number;
  readonly secretHash: Buffer;
  /** When it expires, ms since the epoch, wall-clock time; null if it never expires. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** Whose credential it is. */
export interface CredentialOwner {
  readonly credentialId: number;
  readonly deviceId: number;
  readonly mac: Mac;
  /** Whether it is the lock's own or that of a phone. */
  readonly source: Source;
}

/** Maximum number of a lock's credentials to compare a CONNECT with: all that may be valid, then the newest revoked. */
export const MAX_CREDENTIALS_READ = 64;

/** A phone that acts for a lock (protocol.md §1). */
export interface Phone {
  readonly credentialId: number;
  readonly name: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

export interface NewPhone {
  readonly mac: Mac;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

/** Maximum number of phone credentials of a lock, not counting expired and revoked ones. */
export const MAX_PHONES_PER_LOCK = 32;

/**
 * Credentials of a lock that were replaced or revoked: the caller must close their connections. A replaced one may stay
 * valid for a while, so that the lock can connect with it again.
 */
export interface ReplacedCredentials {
  readonly deviceId: number;
  readonly credentialIds: readonly number[];
}
