// The HTML around a help page: the search, the page, its headings, the menu. Only the search and the copy buttons need
// scripts.
import { relativeAddress } from './page-list.mjs';

/** The HTML of a page. `sections` is the menu, `assets` are script and style sheet, `search` is the search's file. */
export function pageHtml({ page, sections, assets, search }) {
  const to = (address) => relativeAddress(page.address, address);
  const asset = (kind) => to(assets.find((each) => each.kind === kind).name);
  const title = page.address === 'index.html' ? 'lockgate: help' : `${page.title} – lockgate`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${asset('css')}">
<script type="module" src="${asset('js')}"></script>
</head>
<body data-root="${to('index.html').replace(/index\.html$/, '')}" data-search="${to(search)}">
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="brand" href="${to('index.html')}">lockgate <span>help</span></a>
<search><label class="hidden" for="query">Search the help</label>
<input id="query" type="search" placeholder="Search" autocomplete="off" aria-controls="found"></search>
<a class="to-menu" href="#menu">Menu</a>
</header>
<div id="found" class="found" role="region" aria-label="Search results" aria-live="polite" hidden></div>
<div class="columns">
<main id="content" tabindex="-1" class="${page.headings.length > 1 ? 'with-contents' : ''}">
${contentsHtml(page)}<article>
${page.html}</article>
${neighboursHtml(page, sections, to)}</main>
<nav id="menu" class="menu" aria-label="Pages">
${sections.map((section) => sectionHtml(section, page, to)).join('\n')}
</nav>
</div>
</body>
</html>
`;
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Links to the page's headings; empty if there are fewer than two. */
function contentsHtml({ headings }) {
  if (headings.length < 2) return '';
  const links = headings.map(
    ({ level, id, text }) => `<li class="level-${level}"><a href="#${id}">${escaped(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>\n${links.join('\n')}\n</ul></nav>\n`;
}

function sectionHtml({ title, pages }, page, to) {
  const links = pages.map((each) => {
    const current = each.address === page.address ? ' aria-current="page"' : '';
    return `<li><a href="${to(each.address)}"${current}>${escaped(each.title)}</a></li>`;
  });
  return `<p>${title}</p>\n<ul>\n${links.join('\n')}\n</ul>`;
}

/** Links to the pages before and after this one in the menu. */
function neighboursHtml(page, sections, to) {
  const pages = sections.flatMap((section) => section.pages);
  const index = pages.findIndex(({ address }) => address === page.address);
  const link = (other, words, rel) =>
    other === undefined ? '' : `<a rel="${rel}" href="${to(other.address)}">${words} ${escaped(other.title)}</a>`;
  return `<footer>${link(pages[index - 1], '←', 'prev')}${link(pages[index + 1], '→', 'next')}</footer>\n`;
}
