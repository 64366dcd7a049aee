/** The link to the help, which every port of the pages serves, also to readers who have not logged in. */
import type { JSX } from 'preact';

/** Opens in a tab of its own, so that nothing that was entered on the page is lost. */
export function HelpLink(): JSX.Element {
  return (
    <a class="help-link" href="/help/" target="_blank" rel="noreferrer">
      Help
    </a>
  );
}
