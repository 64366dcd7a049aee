// The script of the help's pages: the search, and a button that copies a block of shell commands. The text of all
// sections is fetched when somebody first searches.

/** Results shown at most. */
const MAX_RESULTS = 12;
/** Characters of text shown around a found word. */
const EXCERPT_CHARS = 160;
/** What a found word is worth, by the place where it is found: a page's title, a heading, the text. */
const WORTH = { title: 12, heading: 8, text: 1 };
/** Occurrences in the text that count, so that long sections don't always win. */
const MAX_OCCURRENCES = 5;

const { root, search: searchFile } = document.body.dataset;
const query = document.getElementById('query');
const found = document.getElementById('found');

/** The sections of all pages, once they are fetched: address, titles, and the texts in lower case. */
let sections;

async function loadSections() {
  const answer = await fetch(searchFile);
  const pages = await answer.json();
  return pages.flatMap(({ address, title, parts }) =>
    parts.map(({ id, heading, text }) => ({
      address: id === '' ? address : `${address}#${id}`,
      title,
      heading,
      text,
      lower: { title: title.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase() },
    })),
  );
}

/** How well a section fits; 0 if it lacks a word. Words match at their beginnings. */
function worthOf({ lower, heading }, words) {
  let worth = 0;
  for (const { pattern } of words) {
    const inText = Math.min(lower.text.match(pattern)?.length ?? 0, MAX_OCCURRENCES);
    // A page's title counts for its first section only, or each of its sections would be found.
    const inTitle = heading === '' && lower.title.match(pattern) ? WORTH.title : 0;
    const inHeading = lower.heading.match(pattern) ? WORTH.heading : 0;
    if (inText + inTitle + inHeading === 0) return 0;
    worth += inText * WORTH.text + inTitle + inHeading;
  }
  return worth;
}

/** The words of what was typed, each with the pattern that finds it at the beginning of a word. */
function wordsOf(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return words.map((word) => {
    const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return { word, pattern: new RegExp(`(?<![\\p{L}\\p{N}])${escaped}`, 'gu') };
  });
}

async function search() {
  const typed = query.value.trim();
  if (typed === '') {
    found.hidden = true;
    return;
  }
  sections ??= await loadSections();
  // Something else may have been typed while the sections were fetched.
  if (query.value.trim() !== typed) return;
  const words = wordsOf(typed);
  const results = sections
    .map((section) => ({ section, worth: worthOf(section, words) }))
    .filter(({ worth }) => worth > 0)
    .sort((a, b) => b.worth - a.worth);
  show(
    results.map(({ section }) => section),
    words,
  );
}

function show(results, words) {
  const items = results.slice(0, MAX_RESULTS).map((section) => resultItem(section, words));
  const list = document.createElement('ul');
  list.append(...items);
  const count = document.createElement('p');
  const shown = results.length > MAX_RESULTS ? `; the best ${MAX_RESULTS} are shown` : '';
  count.textContent =
    results.length === 0
      ? 'Nothing was found.'
      : `${results.length} sections${shown}`.replace(/^1 sections/, '1 section');
  found.replaceChildren(count, list);
  found.hidden = false;
}

function resultItem({ address, title, heading, text, lower }, words) {
  const link = document.createElement('a');
  link.href = root + address;
  const name = document.createElement('strong');
  name.textContent = heading === '' ? title : `${title} › ${heading}`;
  const excerpt = document.createElement('span');
  const places = words.map(({ pattern }) => lower.text.search(pattern)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, lower.text.length) - EXCERPT_CHARS / 4);
  const from = places.length === 0 ? 0 : start;
  const piece = text.slice(from, from + EXCERPT_CHARS);
  const isCut = text.length > from + EXCERPT_CHARS;
  excerpt.append(from > 0 ? '… ' : '', ...marked(piece, words), isCut ? ' …' : '');
  link.append(name, excerpt);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

/** The text with the found words marked, as nodes. */
function marked(text, words) {
  const pattern = new RegExp(words.map((each) => each.pattern.source).join('|'), 'giu');
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const mark = document.createElement('mark');
    mark.textContent = match[0];
    nodes.push(text.slice(end, match.index), mark);
    end = match.index + match[0].length;
  }
  return [...nodes, text.slice(end)];
}

/** Moves the focus through the search field and the results. */
function moveFocus(step) {
  const stops = [query, ...found.querySelectorAll('a')];
  const index = stops.indexOf(document.activeElement);
  stops[Math.min(Math.max(index + step, 0), stops.length - 1)].focus();
}

function onKey(event) {
  const isInSearch = query === document.activeElement || found.contains(document.activeElement);
  if (event.key === '/' && !isInSearch) query.focus();
  else if (event.key === 'Escape' && isInSearch) {
    query.value = '';
    found.hidden = true;
  } else if (event.key === 'Enter' && query === document.activeElement) found.querySelector('a')?.click();
  else if (isInSearch && !found.hidden && event.key === 'ArrowDown') moveFocus(1);
  else if (isInSearch && !found.hidden && event.key === 'ArrowUp') moveFocus(-1);
  else return;
  event.preventDefault();
}

/** Adds a button to each block of shell commands, where the browser lets pages copy. */
function addCopyButtons() {
  if (navigator.clipboard === undefined) return;
  for (const code of document.querySelectorAll('code.language-sh, code.language-bash')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(code.textContent.trimEnd());
      button.textContent = 'Copied';
    });
    code.closest('figure').append(button);
  }
}

query.addEventListener('input', () => void search());
document.addEventListener('keydown', onKey);
// A link to a section of the same page loads no page, so the results must be hidden.
found.addEventListener('click', () => {
  found.hidden = true;
});
addCopyButtons();
