// Renders one Markdown file as the HTML of a help page. The Markdown is ours, so HTML in it is kept. Headings get the
// anchors that GitHub gives them, so that the same links work in both places.
import { posix } from 'node:path';
import MarkdownIt from 'markdown-it';
import { relativeAddress } from './page-list.mjs';

/**
 * Renders a file.
 *
 * `follow(path)` takes the project's path that a link leads to and returns the address of its page or copy, relative to
 * the first page, or null if the help does not have it. `address` is that of this page.
 *
 * Returns `{ title, html, headings, parts }`: the text of the first heading; the headings of levels 2 and 3 as
 * `{ level, id, text }`; and for the search, as `parts`, the text below each heading as `{ id, heading, text }`.
 */
export function renderPage({ file, address, text, follow }) {
  const markdown = new MarkdownIt({ html: true });
  const environment = { anchors: new Set() };
  const tokens = markdown.parse(text.replace(/<!--[\s\S]*?-->\n?/g, ''), environment);
  const headings = [];
  for (const [index, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue;
    const id = anchorOf(plainText(tokens[index + 1]), environment.anchors);
    token.attrSet('id', id);
    headings.push({ level: Number(token.tag.slice(1)), id, text: plainText(tokens[index + 1]) });
  }
  const link = (href) => linkFrom(file, address, href, follow);
  for (const token of tokens) if (token.type === 'inline') rewriteLinks(token, link);
  setRules(markdown);
  return {
    title: headings.find(({ level }) => level === 1)?.text ?? file,
    html: markdown.renderer.render(tokens, markdown.options, environment),
    headings: headings.filter(({ level }) => level === 2 || level === 3),
    parts: searchParts(tokens),
  };
}

/** The anchor of a heading, as GitHub makes it: a heading that occurs again has a number at its end. */
function anchorOf(text, taken) {
  const slug = text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
  let anchor = slug;
  for (let number = 1; taken.has(anchor); number += 1) anchor = `${slug}-${number}`;
  taken.add(anchor);
  return anchor;
}

/** The text of an inline token without its markup. */
function plainText({ children }) {
  return (children ?? [])
    .map(({ type, content }) => (type === 'softbreak' ? ' ' : /^(text|code_inline)$/.test(type) ? content : ''))
    .join('');
}

/** Gives each link and picture its address in the help; a link to a file that the help lacks becomes its text. */
function rewriteLinks(inline, link) {
  const open = [];
  for (const token of inline.children) {
    if (token.type === 'image') token.attrSet('src', link(token.attrGet('src')).href ?? '');
    if (token.type === 'link_open') {
      const { href, source } = link(token.attrGet('href'));
      if (href === null) token.tag = 'span';
      open.push({ tag: token.tag, source });
      token.attrs = href === null ? [] : [['href', href]];
    }
    if (token.type === 'link_close') {
      const { tag, source } = open.pop();
      token.tag = tag;
      // The rule for link_close shows it after the text.
      token.meta = source;
    }
  }
}

/** Where a link leads: `{ href }`, or `{ href: null, source }` with the path of a file that the help does not have. */
function linkFrom(file, address, href, follow) {
  if (/^[a-z]+:/.test(href) || href.startsWith('#')) return { href };
  const [path, anchor] = href.split('#');
  const target = posix.join(posix.dirname(file), decodeURI(path));
  const found = follow(target);
  if (found === null) return { href: null, source: target };
  return { href: relativeAddress(address, found) + (anchor === undefined ? '' : `#${anchor}`) };
}

/** Replaces some of markdown-it's rules, so that what may be wider than the page (tables, code) scrolls by itself. */
function setRules(markdown) {
  const { rules } = markdown.renderer;
  const { escapeHtml } = markdown.utils;
  const plain = (tokens, index, options, _environment, self) => self.renderToken(tokens, index, options);
  rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  rules.table_close = () => '</table></div>\n';
  rules.heading_close = (tokens, index) => {
    const { tag } = tokens[index];
    const id = tokens[index - 2].attrGet('id');
    if (tag === 'h1') return '</h1>\n';
    return ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></${tag}>\n`;
  };
  rules.link_close = (tokens, index, ...rest) => {
    const source = tokens[index].meta;
    const closing = plain(tokens, index, ...rest);
    return source ? `${closing} <span class="source">(${escapeHtml(source)} in the source)</span>` : closing;
  };
  rules.fence = (tokens, index) => {
    const { info, content } = tokens[index];
    const [language = '', ...terminal] = info.trim().split(/\s+/);
    const caption = terminal.length === 0 ? '' : `<figcaption>${escapeHtml(terminal.join(' '))}</figcaption>`;
    const kind = language === '' ? '' : ` class="language-${escapeHtml(language)}"`;
    const code = /^(sh|bash|console)$/.test(language) ? shellHtml(content, escapeHtml) : escapeHtml(content);
    return `<figure class="code">${caption}<pre tabindex="0"><code${kind}>${code}</code></pre></figure>\n`;
  };
}

/** A shell block with its comments marked. */
function shellHtml(content, escapeHtml) {
  return content
    .split('\n')
    .map((line) => {
      const [, command = '', comment = ''] = /^(.*?)((?:^|\s)#\s.*)?$/.exec(line) ?? [];
      return escapeHtml(command) + (comment === '' ? '' : `<span class="comment">${escapeHtml(comment)}</span>`);
    })
    .join('\n');
}

/** The text below each heading, for the search. Rows of tables and blocks of code count too. */
function searchParts(tokens) {
  const parts = [{ id: '', heading: '', texts: [] }];
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open' && token.tag !== 'h1')
      parts.push({ id: token.attrGet('id'), heading: plainText(tokens[index + 1]), texts: [] });
    else if (token.type === 'inline' && tokens[index - 1]?.type !== 'heading_open')
      parts.at(-1).texts.push(plainText(token));
    else if (token.type === 'fence') parts.at(-1).texts.push(token.content);
  }
  return parts.map(({ id, heading, texts }) => ({ id, heading, text: texts.join(' ').replace(/\s+/g, ' ').trim() }));
}
