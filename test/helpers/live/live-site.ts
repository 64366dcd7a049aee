/**
 * A live feed (gateway/live), which sends changed locks and events to open HTTP streams, with a store in memory that
 * counts its reads and with clocks that the test moves. There is no gateway around it and no HTTP.
 */
import type { Readable } from 'node:stream';
import { GatewayEvents } from '../../../gateway/events.js';
import type { Audience } from '../../../gateway/live/audience.js';
import { LiveFeed } from '../../../gateway/live/live-feed.js';
import type { LiveStream, StreamRequest } from '../../../gateway/live/live-stream.js';
import { type DeviceState, newDeviceState } from '../../../gateway/locks/device-state.js';
import { ReadTurns } from '../../../gateway/locks/list/read-turns.js';
import type { Device } from '../../../gateway/store/contract/devices/device.js';
import { afterThisTurn, ManualClock, type Milliseconds } from '../../../proto/clock.js';
import { testMac } from '../gateway/test-gateway.js';

/**
 * Turns of the event loop that suffice for all work under way: 20 snapshots of 3 parts, 2 turns for a part, take 120.
 */
const TURNS = 150;
/** Shorter than the feed's timers, so that work started by one timer ends before the next fires. */
const STEP_MS = 100;

/** How much work the feed has done. */
export interface Work {
  /** Locks read from the store. */
  locksRead: number;
  /** Locks turned into JSON. */
  locksRendered: number;
  /** Events of the gateway turned into JSON. */
  eventsRendered: number;
}

/** The feed, its locks, its events and its clock. */
export class LiveSite {
  readonly clock = new ManualClock(1_000_000);
  readonly events = new GatewayEvents();
  readonly work: Work = { locksRead: 0, locksRendered: 0, eventsRendered: 0 };
  readonly devices = new Map<number, Device>();
  /** By device id; a lock without one has never connected. */
  readonly states = new Map<number, DeviceState>();
  readonly feed: LiveFeed;
  /** The listeners for the gateway's events. */
  readonly #tails = new Set<(toJson: () => unknown) => void>();

  /** @param locks how many locks the first merchant has */
  constructor(locks: number) {
    for (let id = 1; id <= locks; id += 1) this.setDevice(id, 1);
    this.feed = new LiveFeed({
      store: {
        readDevices: async ({ merchantId, afterMac, limit }) =>
          this.#counted(
            [...this.devices.values()]
              .filter((each) => merchantId === undefined || each.merchantId === merchantId)
              .filter(({ mac }) => afterMac === undefined || mac > afterMac)
              .slice(0, limit),
          ),
        findDevices: async (ids) => this.#counted(ids.flatMap((id) => this.devices.get(id) ?? [])),
        findDeviceId: async (mac) => [...this.devices.values()].find((each) => each.mac === mac)?.id ?? null,
      },
      states: {
        find: (deviceId) => {
          const state = this.states.get(deviceId);
          return state && { state };
        },
      },
      events: this.events,
      runClock: this.clock,
      clock: this.clock,
      turns: new ReadTurns(),
      tail: (listener) => {
        this.#tails.add(listener);
        return () => void this.#tails.delete(listener);
      },
    });
  }

  #counted(devices: readonly Device[]): Device[] {
    this.work.locksRead += devices.length;
    return [...devices];
  }

  /** Adds or replaces a lock in the store, without announcing the change. */
  setDevice(id: number, merchantId: number, name: string | null = null): void {
    const merchantName = `merchant ${merchantId}`;
    const otherFields = { mac: testMac(id), simulated: false, createdAtMs: 0, labels: {} };
    this.devices.set(id, { id, merchantId, merchantName, name, ...otherFields });
  }

  /** Makes a lock report a theft, without announcing the change. */
  steal(id: number): void {
    const state = newDeviceState(testMac(id), 0, 0);
    const key = { credential: 1, life: 0, boot: 1, sequence: 1 };
    this.states.set(id, { ...state, ping: { ...key, timeMs: 0, reason: 'REASON_THEFT', kind: 'gps' } });
  }

  /** How many functions listen for the gateway's events. */
  get listeners(): number {
    const names = ['locks-changed', 'locks-added', 'lock-departed', 'command', 'uplink'] as const;
    return names.reduce((sum, name) => sum + this.events.listenerCount(name), this.#tails.size);
  }

  /** Announces that locks changed, as a commit does. */
  change(...ids: readonly number[]): void {
    this.events.emit('locks-changed', { locks: ids.map((deviceId) => ({ deviceId })) });
  }

  /** Announces that all locks changed, each 100 ms for a time, as locks do that are ridden. */
  async changeAllFor(span: Milliseconds): Promise<void> {
    for (let leftMs = span; leftMs > 0; leftMs -= STEP_MS) {
      this.change(...this.devices.keys());
      await this.advance(STEP_MS);
    }
  }

  /** Announces events of the gateway. */
  emitGatewayEvents(count: number): void {
    for (let number = 0; number < count; number += 1)
      for (const listener of this.#tails)
        listener(() => {
          this.work.eventsRendered += 1;
          return { event: 'ping', number };
        });
  }

  /** The readers of a merchant's locks; undefined for operators, who see all locks. */
  audience(merchantId: number | undefined): Audience {
    return {
      name: `merchant ${merchantId}`,
      merchantId,
      lockJson: ({ device }) => {
        this.work.locksRendered += 1;
        return { id: device.id, name: device.name };
      },
      departureJson: (mac) => ({ mac }),
    };
  }

  /** Opens a stream for an audience. */
  open(merchantId: number | undefined, request: Partial<StreamRequest> = {}): LiveStream {
    return this.feed.open({ audience: this.audience(merchantId), isAllowed: async () => true, ...request });
  }

  /** Advances the clock in steps of 100 ms, and lets the feed finish its work after each step. */
  async advance(span: Milliseconds): Promise<void> {
    for (let leftMs = span; leftMs > 0; leftMs -= STEP_MS) {
      this.clock.advance(Math.min(leftMs, STEP_MS));
      await finishWork();
    }
  }
}

/** Resolves when all work under way is done. */
export async function finishWork(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>((resolve) => afterThisTurn(resolve));
}

/** Reads a stream from now on. The returned object's `text` grows. */
export function readText(out: Readable): { text: string } {
  const read = { text: '' };
  out.on('data', (chunk: Buffer) => {
    read.text += chunk.toString('utf8');
  });
  return read;
}

/** The events in a stream's text: `snapshot of 3` (its number of locks), `lock 7` (its id), or only the name. */
export function eventsIn(text: string): string[] {
  return [...text.matchAll(/^event: (.+)\n(?:id: .*\n)?data: (.+)$/gm)].map(([, name, json = '']) => {
    const { locks, id } = JSON.parse(json) as { locks?: readonly { id: number }[]; id?: number };
    if (locks !== undefined) return `${name} of ${locks.length}`;
    return id === undefined ? `${name}` : `${name} ${id}`;
  });
}
