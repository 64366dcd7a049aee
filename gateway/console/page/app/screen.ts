/** A screen of the console, as the shell lists it. Types only. */
import type { ComponentType } from 'preact';
import type { Route } from './route.js';

export interface Screen {
  /** The first part of its address, such as `locks`. */
  readonly name: string;
  /** Its name in the navigation. */
  readonly title: string;
  /** The key that opens it after `g`, such as `l`. */
  readonly key: string;
  /** Whether the navigation lists it; a lock's screen is opened from lists. */
  readonly isListed: boolean;
  readonly view: ComponentType<{ readonly route: Route }>;
}
