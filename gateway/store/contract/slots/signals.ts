/**
 * What gateways that share a store tell each other, so that none waits for its next look at the store. A signal says
 * only what to read again: everything that it is about is in the store before it is sent. It reaches each gateway that
 * runs, other than the sender, within some ten milliseconds, or is lost; a gateway that may have lost some gets
 * `missed`. So whoever acts on signals also looks at the store from time to time.
 */
import type { Mac } from '../../../../proto/wire/mac.js';

export type Signal =
  /** These merchants have new events in the log; null: merchants that the sender does not know. */
  | { readonly type: 'events'; readonly merchantIds: readonly number[] | null }
  /** Commands for these locks were added or cancelled. */
  | { readonly type: 'commands'; readonly deviceIds: readonly number[] }
  /** These locks were written; null: it may be any. */
  | { readonly type: 'locks'; readonly macs: readonly Mac[] | null }
  /** The history of a lock was erased. */
  | { readonly type: 'erased'; readonly deviceId: number }
  /** A merchant was closed: its locks' sessions must end. */
  | { readonly type: 'merchant-closed'; readonly merchantId: number }
  /** A webhook URL was changed or removed, or (`due`) deliveries of it were made due. */
  | { readonly type: 'url'; readonly urlId: number; readonly what: 'changed' | 'due' }
  /** Notifications were queued, or a recipient was changed. */
  | { readonly type: 'notifications'; readonly recipientId: number | null }
  /** Somebody gave a wrong password or token; the keys are those of the login guard (accounts/login-guard.ts). */
  | { readonly type: 'guess'; readonly guarded: 'password' | 'invitation'; readonly keys: readonly string[] }
  /** Signals may have been lost. */
  | { readonly type: 'missed' };

export interface Signals {
  /** Sends a signal soon. Never fails: if signals can't be sent, receivers get `missed` later. */
  send(signal: Signal): void;
  /** Adds a listener for other gateways' signals. */
  onSignal(listener: (signal: Signal) => void): void;
}
