/** What a person does on a page of the console, and what the page then shows. */
import { systemClock } from '../../../proto/clock.js';
import { decodeDownlink, encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../../proto/wire/ping.js';
import type { BrowserPage } from '../../clients/browser.js';
import type { TestLock } from '../mqtt/test-lock.js';

/** The time limit of a wait. */
export const TIMEOUT = { timeout: 20_000 };

/** The colours and widths, in CSS pixels, in which every screen is checked for accessibility. */
export const LOOKS: readonly (readonly [colours: string, width: number])[] = [
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
];

/** Waits until the page shows a text. */
export async function waitForText(page: BrowserPage, text: string): Promise<void> {
  await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`, TIMEOUT);
}

/**
 * How many elements the page has made of what a lock, a merchant or a receiver wrote. The pages' policy keeps an
 * injected script from running, so that only its element shows that a text was taken for HTML.
 */
export function injectedElements(page: BrowserPage): Promise<number> {
  return page.evaluate<number>("document.querySelectorAll('img[src=x], .injected').length");
}

/** Clicks the button with this text. */
export async function press(page: BrowserPage, text: string): Promise<void> {
  const isWanted = `each.innerText.trim() === ${JSON.stringify(text)}`;
  const button = `[...document.querySelectorAll('button')].find((each) => ${isWanted})`;
  await page.waitForFunction(`${button} !== undefined`, TIMEOUT);
  await page.evaluate<void>(`${button}.click()`);
}

/** Opens a view. @param address such as `#/locks` */
export async function goTo(page: BrowserPage, address: string): Promise<void> {
  await page.evaluate<void>(`{ location.hash = ${JSON.stringify(address)}; }`);
}

/** An uplink of a lock, made now. */
export function uplinkNow(sequence: number, body: Uplink['body']): Buffer {
  const numbers = { boot: 1, sequence, timeMs: systemClock.now(), kept: 0, dropped: 0 };
  return Buffer.from(encodeUplink({ ...numbers, power: DEFAULT_POWER, body }));
}

/** What the sensors of the lock report in each ping. */
const SENSORS = { lockState: 'locked', batteryPercent: 71, ebikeVolts: null, tetherState: 'detached' } as const;

/** A ping that reports a theft. */
export const THEFT = {
  ...SENSORS,
  kind: 'gps',
  reason: 'REASON_THEFT',
  position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 9 },
  speedMetersPerSecond: 4,
  directionDegrees: 80,
} as const;

/** A daily ping. @param firmwareVersion what the lock says of itself */
export function periodPing(firmwareVersion: string): Uplink['body'] {
  return { ...SENSORS, kind: 'cellular', reason: 'REASON_PERIOD_TRACKING', firmwareVersion, position: null };
}

/** The id of the next command that the lock gets. */
export function nextCommand(lock: TestLock): Promise<number> {
  return new Promise((resolve) => {
    lock.client.on('message', (_topic, payload) => {
      const downlink = decodeDownlink(payload);
      if (downlink.ok) resolve(downlink.value.id);
    });
  });
}
