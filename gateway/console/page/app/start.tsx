/** Starts a page: the colours, and its root component in the element that the gateway's HTML has for it. */
import { type ComponentChild, render } from 'preact';
import { applyTheme, storedTheme } from './theme.js';

/** The addresses of the workers, which the HTML names because their file names have hashes. */
export interface PageAddresses {
  readonly liveWorker: string;
  readonly traceWorker: string;
}

/** @param draw makes the root component */
export function startPage(draw: (addresses: PageAddresses) => ComponentChild): void {
  applyTheme(storedTheme());
  const root = document.getElementById('app');
  if (root === null) throw new Error('the page has no element for the console');
  const { liveWorker = '', traceWorker = '' } = root.dataset;
  render(draw({ liveWorker, traceWorker }), root);
}
