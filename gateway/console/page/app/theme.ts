/**
 * The colours of the page: those of the system, or the reader's choice, which this browser remembers. The style sheet
 * reads the attribute `data-theme` of the root element.
 */

const STORAGE_KEY = 'lockgate-theme';
const THEMES = ['system', 'light', 'dark'] as const;

export type Theme = (typeof THEMES)[number];

export function storedTheme(): Theme {
  return THEMES.find((theme) => theme === localStorage.getItem(STORAGE_KEY)) ?? 'system';
}

/** Uses a theme from now on. */
export function rememberTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, theme);
  applyTheme(theme);
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The theme after this one, for a button that goes through all of them. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
}
