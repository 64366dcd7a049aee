/** The frame of every screen: the navigation, the account, the colours, the keys, and the screen of the address. */
import type { ComponentChildren, JSX } from 'preact';
import { useCallback, useMemo, useState } from 'preact/hooks';
import { useLive } from '../live/use-live.js';
import { Dialog } from '../view/dialog.js';
import { HelpLink } from '../view/help-link.js';
import { Badge } from '../view/parts.js';
import { useKeys } from './keys.js';
import { type Route, routeTo } from './route.js';
import type { Screen } from './screen.js';
import { ScreenKeys } from './screen-keys.js';
import { nextTheme, rememberTheme, storedTheme } from './theme.js';
import { useRoute } from './use-route.js';

interface ShellProps {
  /** Whose console it is, such as `Operator` or a merchant's name. */
  readonly title: string;
  readonly screens: readonly Screen[];
  /** What the header shows on its right side: the account, and how to log out. */
  readonly account: ComponentChildren;
}

const THEME_SIGNS = { system: '◐', light: '☀', dark: '☾' } as const;

export function Shell({ title, screens, account }: ShellProps): JSX.Element {
  const route = useRoute();
  const [isHelpShown, setHelpShown] = useState(false);
  useShellKeys(
    screens,
    useCallback(() => setHelpShown(true), []),
  );
  const screen = screens.find(({ name }) => name === route.screen);
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <a class="brand" href={routeTo('now')}>
          <span class="brand-mark" aria-hidden="true" />
          lockgate
        </a>
        <span class="bar-title">{title}</span>
        <StaleNote />
        <ThemeButton />
        {account}
      </header>
      <nav class="nav" aria-label="Screens">
        {screens
          .filter(({ isListed }) => isListed)
          .map(({ name, title: text }) => (
            <a key={name} href={routeTo(name)} aria-current={name === route.screen ? 'page' : undefined}>
              {text}
            </a>
          ))}
        <HelpLink />
      </nav>
      <main id="main" tabIndex={-1}>
        {screen === undefined ? <NoScreen route={route} /> : <screen.view route={route} />}
      </main>
      {isHelpShown && <KeyHelp screens={screens} onClose={() => setHelpShown(false)} />}
    </div>
  );
}

/** `g` and the key of a screen open it, `?` lists the keys. */
function useShellKeys(screens: readonly Screen[], showHelp: () => void): void {
  const read = useMemo(() => {
    const open = (name: string): void => {
      location.hash = routeTo(name);
    };
    const keys = new ScreenKeys({ screens: new Map(screens.map(({ name, key }) => [key, name])), open, showHelp });
    return (key: string) => keys.press(key);
  }, [screens, showHelp]);
  useKeys(read);
}

/** Says that the page's locks are no longer live, on every screen, while the gateway does not answer. */
function StaleNote(): JSX.Element {
  const { state } = useLive();
  return (
    <span class="bar-space" role="status">
      {state === 'interrupted' && (
        <span title="The gateway does not answer. The page connects again by itself.">
          <Badge tone="warn">not live</Badge>
        </span>
      )}
    </span>
  );
}

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(storedTheme);
  const change = (): void => {
    const next = nextTheme(theme);
    rememberTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" class="quiet" onClick={change} title={`Colours: ${theme}`} aria-label={`Colours: ${theme}`}>
      {THEME_SIGNS[theme]}
    </button>
  );
}

function NoScreen({ route }: { readonly route: Route }): JSX.Element {
  return (
    <section class="empty">
      <h1>There is no screen “{route.screen}”</h1>
      <p>
        <a href={routeTo('now')}>Go to the first screen</a>
      </p>
    </section>
  );
}

function KeyHelp({ screens, onClose }: { readonly screens: readonly Screen[]; readonly onClose: () => void }) {
  const keys: readonly (readonly [string, string])[] = [
    ['?', 'this list'],
    ['j k', 'next and previous row of a list'],
    ['Enter', 'open the row'],
    ['/', 'search'],
    ['p', 'stop live events on the screen, and go on'],
    ['+ − 0 ← →', 'in a timeline: closer, farther, everything, earlier, later'],
    ...screens.filter(({ isListed }) => isListed).map(({ key, title }) => [`g ${key}`, title] as const),
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
